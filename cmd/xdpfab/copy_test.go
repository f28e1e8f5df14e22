// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a file of the test.
func write(t *testing.T, data []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func noise(n int) []byte {
	rng, b := rand.New(rand.NewPCG(5, uint64(n))), make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// put copies a file to a region, get copies it back, in whole and in parts.
func TestPutAndGet(t *testing.T) {
	n := newNode(t)
	data := noise(64 << 10)
	in, back := write(t, data), filepath.Join(t.TempDir(), "back")
	ok := func(in, line, want string) {
		t.Helper()
		if file := strings.Fields(line)[2]; file != "-" || line[:3] == "put" {
			r := n.run(in, n.line(line)...)
			if r.code != 0 || r.err != "" || !strings.HasPrefix(r.out, line[:3]+": ") || strings.Count(r.out, "\n") != 1 || !strings.Contains(r.out, want) {
				t.Errorf("%s: %+v, want %q", line, r, want)
			}
			return
		}
		if r := n.run(in, n.line(line)...); r.code != 0 || r.err != "" || r.out != want {
			t.Errorf("%s: exit code %d, %s, %d bytes of output, want %d", line, r.code, r.err, len(r.out), len(want))
		}
	}
	holds := func(what string, want []byte) {
		t.Helper()
		if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d, or others", what, len(got), err, len(want))
		}
	}
	ok("", "put PEER "+in+" --region r", "put: 65536 bytes from "+in+" to r of "+peerAddr+" in ")
	ok("", "get PEER "+back+" --region r", "get: 65536 bytes from r of "+peerAddr+" to "+back+" in ")
	holds("the whole region", data)
	ok("", "get PEER - --region ro --offset 1000 --length 77", string(data[1000:1077]))
	ok("", "get PEER - --key 0x51 --length 10", string(data[:10]))
	ok("", "get PEER - --region r --offset 65536", "")
	ok("01234", "put PEER - --key 0x51 --offset 100 --skip 2", "put: 3 bytes from stdin to key 0x51 of ")
	copy(data[102:], "234")
	ok("", "get PEER "+back+" --region r --length 60000", "")
	holds("a part", data[:60000])
	ok("", "get PEER "+back+" --region r --resume", "/s; 60000 before them were there")
	holds("the rest as well", data)
	ok("", "get PEER "+back+" --region r --resume", "get: 0 bytes from ")
	holds("nothing more", data)
	if r := n.run("", n.line("get PEER "+back+" --region r --show-progress")...); r.code != 0 || !strings.HasPrefix(r.err, "get [........................]   0 %  0 bytes of 64 KiB  ") {
		t.Errorf("exit code %d, %s", r.code, r.err)
	}
	if got := mustRun[copyReport](n, "get PEER "+back+" --region r --offset 8 --length 100"); got.Bytes != 100 || got.Offset != 8 || got.Region != "r" || got.To != back {
		t.Errorf("%+v", got)
	}
	ok("", "get PEER "+back+" --region r", "")
	for _, c := range []refusal{
		{"get PEER - --region r --json", exitUsage, "want a file"},
		{"get PEER", exitUsage, "missing FILE"},
		{"get PEER -", exitUsage, "missing the region: want --region NAME or --key KEY"},
		{"get PEER - --key 5", exitUsage, "want --length"},
		{"get PEER - --key zz", exitUsage, `key "zz": want a 64-bit number`},
		{"get PEER - --region r --resume", exitUsage, "want a file"},
		{"get PEER /absent/file --region r", exitUsage, "no such file"},
		{"get PEER " + back + " --region r --length 5 --resume", exitUsage, "has 65536 bytes already"},
		{"get PEER - --region r --offset 65537", exitFailed, "beyond the end"},
		{"get PEER - --region r --offset 65535 --length 2", exitFailed, "beyond the end"},
		{"get PEER - --key 0 --length 2", exitFailed, "unknown, or revoked: `xdpfab list` shows the keys"},
		{"get PEER - --key 0x99 --length 2", exitFailed, "no memory region with this key"},
		{"put PEER /absent/file --region r", exitUsage, "no such file"},
		{"put PEER " + in + " --key 0x99", exitFailed, "unknown, or revoked: `xdpfab list` shows the keys"},
		{"put PEER " + in + " --region r --offset 1", exitFailed, "beyond the end"},
		{"put PEER " + in + " --region r --skip 65537", exitUsage, "has 65536 bytes: want 65536 or less; see"},
		{"put PEER " + in + " --region r --offset 1 --skip 65537", exitUsage, "--skip 65537: "},
		{"put PEER " + in + " --region ro", exitFailed, "region \"ro\" grants read, and put takes write"},
	} {
		checkRefusal(t, c.args, n.run("", n.line(c.args)...), c.code, c.say)
	}
	checkRefusal(t, "get over a file", n.run("", n.line("get PEER "+back+" --key 0x99 --length 2")...), exitFailed,
		"no memory region with this key")
	holds("what a get found that failed", data)
	ok("", "get PEER "+back+" --region r", "")
	holds("after what was refused", data)
}

// A put with a signal changes the word with the file, and not at all if it fails.
func TestPutWithSignal(t *testing.T) {
	n := newNode(t)
	data := noise(1000)
	in := write(t, data)
	word := func(want uint64) {
		t.Helper()
		if got := binary.LittleEndian.Uint64(n.mem.Bytes()[4096:]); got != want {
			t.Errorf("the word is %d, want %d", got, want)
		}
	}
	for _, x := range []struct {
		signal, said string
		word         uint64
	}{{"r:4096", "r:4096+1", 1}, {"r:4KiB+5", "r:4096+5", 6}, {"r:0x1000=0x10", "r:4096=16", 16}} {
		n.mem.Bytes()[0]++
		r := n.run("", n.line("put PEER "+in+" --region r --signal "+x.signal)...)
		if r.code != 0 || r.err != "" || !strings.HasSuffix(r.out, "; then the signal "+x.said+"\n") {
			t.Errorf("%s: %+v", x.signal, r)
		}
		if word(x.word); !bytes.Equal(n.mem.Bytes()[:len(data)], data) {
			t.Errorf("%s: the file is not there", x.signal)
		}
	}
	if got := mustRun[copyReport](n, "put PEER "+in+" --region r --skip 1000 --signal r:4096=1"); got.Bytes != 0 || got.Signal != "r:4096=1" {
		t.Errorf("%+v", got)
	}
	word(1)
	before := bytes.Clone(n.mem.Bytes())
	for _, c := range []refusal{
		{"put PEER " + in + " --region r --signal r", exitUsage, `--signal: "r": want REGION:OFFSET`},
		{"put PEER " + in + " --region r --signal :8", exitUsage, `--signal: ":8": want REGION:OFFSET`},
		{"put PEER " + in + " --region r --signal r:12", exitUsage, "multiple of 8"},
		{"put PEER " + in + " --region r --signal r:8=x", exitUsage, "a whole number from 0 to 2^64-1"},
		{"put PEER " + in + " --region r --signal r:65536", exitFailed, "nothing was written"},
		{"put PEER " + in + " --region r --signal absent:0", exitFailed, "--signal: "},
		{"put PEER " + in + " --region r --signal ro:0", exitFailed, "grants read, and a signal takes write; nothing was written"},
		{"put PEER " + in + " --region ro --signal r:4096", exitFailed, "the signal was not given"},
	} {
		checkRefusal(t, c.args, n.run("", n.line(c.args)...), c.code, c.say)
	}
	if !bytes.Equal(n.mem.Bytes(), before) {
		t.Error("something has changed by what was refused")
	}
}

// Chunks are finished in their order, up to the first that fails; nothing behind it is.
func TestChunksInOrder(t *testing.T) {
	broken := errors.New("broken")
	for _, fails := range []string{"", "next", "carry", "finish"} {
		begun, finished := 0, 0
		late := make(chan struct{})
		err := chunks{
			next: func(c *chunk) (bool, error) {
				c.at, c.buf = uint64(begun), c.room[:1]
				begun++
				if c.at == 20 && fails == "next" {
					return true, broken
				}
				return c.at < 50, nil
			},
			carry: func(_ context.Context, c *chunk) error {
				switch {
				case c.at == 0: // waits for one behind it
					<-late
				case c.at == 1:
					close(late)
				case c.at == 20 && fails == "carry":
					return broken
				}
				return nil
			},
			finish: func(c *chunk) error {
				if c.at != uint64(finished) {
					return fmt.Errorf("chunk %d is finished in place of %d", c.at, finished)
				}
				if c.at == 20 && fails == "finish" {
					return broken
				}
				finished++
				return nil
			},
		}.run(t.Context())
		want := 20
		if fails == "" {
			want = 50
		}
		if finished != want || (fails == "") != (err == nil) || err != nil && !errors.Is(err, broken) {
			t.Errorf("when %q fails: %d chunks finished, want %d; %v", fails, finished, want, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (chunks{next: func(*chunk) (bool, error) { return false, nil }}).run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// An input that has failed is an empty one: it gives no signal.
func TestPutNothing(t *testing.T) {
	n := newNode(t)
	checkRefusal(t, "no input", n.run("", n.line("put PEER - --region r --signal r:8")...), exitFailed, "nothing came on standard input, so the signal was not given")
	if n.mem.Bytes()[8] != 0 {
		t.Error("the signal was given")
	}
	mustRun[copyReport](n, "put PEER /dev/null --region r --signal r:8")
	if n.mem.Bytes()[8] != 1 {
		t.Error("an empty file gave no signal")
	}
	checkRefusal(t, "long input", n.run(strings.Repeat("x", 65<<10), n.line("put PEER - --region r")...), exitFailed, "which is 65536; nothing was written: shorten the input")
	for _, what := range []string{"put", "get"} {
		checkRefusal(t, what, n.run("", append([]string{what, peerAddr, ""}, n.line("--region r")...)...), exitUsage, "FILE is empty: want a name, or -")
	}
}

// With --json the error of a copy has the number of bytes with which it goes on.
func TestCopyFailedAsJSON(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct {
		line, in string
		bytes    uint64
	}{
		{"put PEER - --region r", strings.Repeat("x", 65<<10), 0},
		{"put PEER - --region r --skip 100", strings.Repeat("x", 66<<10), 100},
		{"get PEER /dev/full --region r", "", 0},
	} {
		r := n.run(c.in, append(n.line(c.line), "--json")...)
		e := new(errorReport)
		if err := json.Unmarshal([]byte(r.err), e); err != nil || e.Bytes == nil || *e.Bytes != c.bytes {
			t.Errorf("%s: %+v, %v: want %d bytes", c.line, r, err, c.bytes)
		}
	}
	if r := n.run("", append(n.line("get PEER - --region none"), "--json")...); strings.Contains(r.err, `"bytes"`) {
		t.Errorf("nothing was under way: %s", r.err)
	}
}
