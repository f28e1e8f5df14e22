// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// copySize is longer than what is under way at a time, in pipes and in chunks.
const copySize = 17<<20 + 12345

// toldOfRestart is part of both errors that a copy may end with when the daemon dies. A
// transfer in flight meets a peer that has restarted; one that begins afterwards, because
// the copy was waiting for its pipe, meets a region that is gone.
const toldOfRestart = "restarted"

// copied is a daemon whose region is a file, and bytes to copy there.
type copied struct {
	*node
	t     *testing.T
	net   *testnet.Pair
	flags []string
	data  []byte
	file  string // that has the data
}

func newCopied(t *testing.T) *copied {
	t.Helper()
	testnet.Require(t)
	dir := t.TempDir()
	c := &copied{t: t, net: testnet.NewPair(t, testnet.Options{}), file: filepath.Join(dir, "data"), data: make([]byte, copySize)}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range c.data {
		c.data[i] = byte(rng.Uint32())
	}
	if err := os.WriteFile(c.file, c.data, 0o600); err != nil {
		t.Fatal(err)
	}
	c.flags = []string{"--region", fmt.Sprintf("r=%d:backing=%s", 17<<20+16384, filepath.Join(dir, "memory"))}
	c.node = serve(t, c.net.B, c.flags...)
	viaDaemon(t, c.net.A)
	return c
}

// crash kills the daemon and starts another one in its place.
func (c *copied) crash() {
	c.t.Helper()
	c.kill()
	c.node = again(c.t, c.net.B, c.socket, c.flags...)
}

// run starts put or get with a file.
func (c *copied) run(what, file string, more ...option) *process {
	c.t.Helper()
	return start(c.t, c.net.A, xdpfabPath, []string{what, c.addr(), file, "-i", c.net.A.IfName, "--region", "r"}, more...)
}

// finish runs put or get to its end, with further flags.
func (c *copied) finish(what, file string, flags ...string) {
	c.t.Helper()
	args := append([]string{what, c.addr(), file, "-i", c.net.A.IfName, "--region", "r"}, flags...)
	start(c.t, c.net.A, xdpfabPath, args).wants(0)
}

// same compares a file with the data.
func (c *copied) same(file string) {
	c.t.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	if !bytes.Equal(got, c.data) {
		c.t.Errorf("%s has %d bytes, or others than were put: want %d", file, len(got), len(c.data))
	}
}

// A file that was put is got back, byte for byte, also from the next life of the daemon.
func TestPutGet(t *testing.T) { ways(t, testPutGet) }

func testPutGet(t *testing.T) {
	c := newCopied(t)
	c.finish("put", c.file)
	back := filepath.Join(t.TempDir(), "back")
	size := fmt.Sprint(copySize)
	c.finish("get", back, "--length", size)
	c.same(back)
	c.crash()
	c.finish("get", back, "--length", size)
	c.same(back)
	c.end()
}

// The daemon is killed in the middle of a put. The client says how far it is certain to
// have come, and another put continues there.
func TestPutBrokenOff(t *testing.T) { ways(t, testPutBrokenOff) }

func testPutBrokenOff(t *testing.T) {
	c := newCopied(t)
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	put := c.run("put", "-", func(cmd *exec.Cmd) { cmd.Stdin = in })
	_ = in.Close()
	if _, err := feed.Write(c.data[:copySize/2]); err != nil {
		t.Fatal(err)
	}
	c.crash()
	_, _ = feed.Write(c.data[copySize/2:]) // fails when the client ends
	_ = feed.Close()
	put.wants(3, toldOfRestart)
	said := regexp.MustCompile(`[;,] (\d+) bytes are certain to be there: continue with --skip (\d+)`).FindStringSubmatch(put.err.String())
	if said == nil || said[1] != said[2] {
		t.Fatalf("stderr %q: want to be told how to continue", put.err.String())
	}
	var sure int
	if _, err := fmt.Sscan(said[1], &sure); err != nil || sure < 4<<20 || sure >= copySize {
		t.Errorf("%d bytes of %d are certain, %v: want some, and not all", sure, copySize, err)
	}
	back := filepath.Join(t.TempDir(), "back")
	c.finish("get", back, "--length", fmt.Sprint(sure))
	if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, c.data[:sure]) {
		t.Errorf("the %d bytes that are certain are not there: %d bytes, %v", sure, len(got), err)
	}
	c.finish("put", c.file, "--skip", said[1])
	c.finish("get", back, "--length", fmt.Sprint(copySize))
	c.same(back)
	c.end()
}

// The daemon is killed in the middle of a get. The bytes that came until then are a
// beginning of the region, and another get continues behind them.
func TestGetBrokenOff(t *testing.T) { ways(t, testGetBrokenOff) }

func testGetBrokenOff(t *testing.T) {
	c := newCopied(t)
	c.finish("put", c.file)
	back := filepath.Join(t.TempDir(), "back")
	file, err := os.Create(back)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	get := c.run("get", "-", func(cmd *exec.Cmd) { cmd.Stdout = to })
	_ = to.Close()
	if _, err := io.CopyN(file, out, 3<<20); err != nil {
		t.Fatal(err)
	}
	c.crash()
	if _, err := io.Copy(file, out); err != nil {
		t.Fatal(err)
	}
	get.wants(3, toldOfRestart, "continue with --offset")
	if s, err := file.Stat(); err != nil || s.Size() >= copySize {
		t.Errorf("%d bytes came, %v: want the copy broken off", s.Size(), err)
	}
	c.finish("get", back, "--length", fmt.Sprint(copySize), "--resume")
	c.same(back)
	c.end()
}

// A put that is ended by a signal, or with its terminal, says how it goes on. One that
// nohup has started goes on by itself.
func TestPutSignalled(t *testing.T) {
	c := newCopied(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		put, _ := c.halfPut(xdpfabPath)
		put.signal(sig)
		code := put.code()
		if text := put.err.String(); code != 1 && code != 3 || !strings.Contains(text, sig.String()+" signal received; ") ||
			!strings.Contains(text, "continue with --skip") {
			t.Errorf("%v: code %d, %s", sig, code, text)
		}
	}
	put, feed := c.halfPut("nohup", xdpfabPath)
	put.signal(syscall.SIGHUP)
	if _, err := feed.Write(c.data[copySize/2:]); err != nil {
		t.Error(err)
	}
	_ = feed.Close()
	put.wants(0)
}

// halfPut starts a put, by a command line that begins with words, and returns when a part
// is there. The rest is to be fed.
func (c *copied) halfPut(words ...string) (put *process, feed *os.File) {
	c.t.Helper()
	in, feed, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = feed.Close() })
	args := append(words[1:], "put", c.addr(), "-", "-i", c.net.A.IfName, "--region", "r", "--timeout", limit.String())
	put = start(c.t, c.net.A, words[0], args, func(cmd *exec.Cmd) { cmd.Stdin = in })
	_ = in.Close()
	if _, err := feed.Write(c.data[:copySize/2]); err != nil {
		c.t.Fatal(err)
	}
	return put, feed // no more than four chunks wait: the first ones are there
}
