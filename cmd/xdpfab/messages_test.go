// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// receiver makes a mailbox at each open, and puts all that it receives into a channel.
func receiver(t *testing.T, n *farNode) <-chan xdpfab.Received {
	got := make(chan xdpfab.Received, 100)
	n.begun = func(_, server *xdpfab.Domain) {
		box, err := server.NewMailbox(xdpfab.MailboxAttr{Number: mailbox})
		if err != nil {
			t.Error(err)
			return
		}
		loop := func(receive func(context.Context, []byte) (xdpfab.Received, error)) {
			for {
				m, err := receive(context.Background(), make([]byte, 1<<20))
				if err != nil {
					return // the domain is closed
				}
				got <- m
			}
		}
		go loop(box.Receive)
		go loop(func(ctx context.Context, b []byte) (xdpfab.Received, error) {
			return box.ReceiveTagged(ctx, 0, ^uint64(0), b)
		})
	}
	return got
}

func TestSend(t *testing.T) {
	n := newNode(t)
	got := receiver(t, n)
	for _, c := range []struct {
		in, line string
		tag      uint64
		want     []string
	}{
		{"", "send PEER hello", 0, []string{"hello"}},
		{"", "send PEER/5 again --tag 0x7", 7, []string{"again"}},
		{"from stdin\n", "send PEER -", 0, []string{"from stdin\n"}},
		{strings.Repeat("x", 100_000), "send PEER", 0, []string{strings.Repeat("x", 100_000)}},
		{"a\nbc\n\nd", "send PEER --lines --tag 9", 9, []string{"a", "bc", "", "d"}},
	} {
		r := n.run(c.in, append(n.line(c.line), "--json")...)
		var rep sendReport
		if err := json.Unmarshal([]byte(r.out), &rep); err != nil || r.code != 0 || rep.Messages != len(c.want) ||
			rep.Bytes != uint64(len(strings.Join(c.want, ""))) || rep.Peer != peerAddr+"/5" {
			t.Errorf("%s: %v, %+v", c.line, err, r)
			continue
		}
		for _, want := range c.want {
			if m := <-got; string(m.Bytes) != want || m.Tagged != (c.tag != 0) || m.Tag != c.tag {
				t.Errorf("%s: received %+v, want %.20q with tag %d", c.line, m, want, c.tag)
			}
		}
	}
	if r := n.run("", n.line("send PEER hi")...); r.code != 0 || !strings.HasPrefix(r.out, "1 message with 2 bytes arrived at "+peerAddr+"/5 in ") {
		t.Errorf("%+v", r)
	}
	for _, c := range []refusal{
		{"send", exitUsage, "missing PEER"},
		{"send PEER a b", exitUsage, "quote a message of several words"},
		{"send PEER a --lines", exitUsage, "want no MESSAGE"},
		{"send PEER a --tag x", exitUsage, "want a 64-bit number"},
		{"send PEER/9 a", exitFailed, "nobody receives at " + peerAddr + "/9: run `xdpfab receive --mailbox 9` there, or name the number of another mailbox: connect on " + peerAddr + "/9: not executed: peer refused the session: it has no such endpoint"},
		{"send PEER/0 a", exitFailed, "the peer receives no messages"},
	} {
		checkRefusal(t, c.args, n.run("", n.line(c.args)...), c.code, c.say)
	}
}

// sender sends to the mailbox that a receive has made, once it is there.
func sender(t *testing.T, n *farNode, number int, send func(context.Context, *xdpfab.Peer) error) {
	n.begun = func(client, server *xdpfab.Domain) {
		addr := fmt.Sprintf("%s/%d", client.Name(0), number)
		go func() {
			var p *xdpfab.Peer
			testnet.Eventually(t, "the mailbox is there", func() (is bool) {
				var err error
				p, err = server.Dial(context.Background(), addr)
				return err == nil
			})
			if err := send(context.Background(), p); err != nil {
				t.Error(err)
			}
		}()
	}
}

func TestReceive(t *testing.T) {
	n := newNode(t)
	sender(t, n, mailbox, func(ctx context.Context, p *xdpfab.Peer) error {
		return firstError(p.Send(ctx, []byte("plain")), p.SendTagged(ctx, 7, []byte("tagged")), p.Send(ctx, []byte{0xff, 7}),
			p.Send(ctx, []byte("0123456789")))
	})
	r := n.run("", append(n.line("receive --count 4 --size 6"), "--json")...)
	got := map[string]messageReport{}
	for line := range strings.Lines(r.out) {
		var m messageReport
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.From == "" || m.Time.IsZero() {
			t.Fatalf("%v: %s", err, line)
		}
		got[m.Text+m.Base64] = m
	}
	if m := got["tagged"]; r.code != 0 || len(got) != 4 || m.Tag == nil || *m.Tag != 7 || got["plain"].Tag != nil || got["/wc="].Length != 2 ||
		!got["012345"].Truncated || got["012345"].Length != 10 {
		t.Errorf("%+v", r)
	}
	sender(t, n, 9, func(ctx context.Context, p *xdpfab.Peer) error {
		return firstError(p.SendTagged(ctx, 1, []byte("other")), p.SendTagged(ctx, 2, []byte("a\x1b[31mb")), p.SendTagged(ctx, 2, []byte("c")))
	})
	r = n.run("", n.line("receive --mailbox 9 --tag 2 --count 2")...)
	if lines := strings.Split(r.out, "\n"); r.code != 0 || len(lines) != 3 || !strings.HasSuffix(lines[0], `  tag 2  "a\x1b[31mb"`) || !strings.HasSuffix(lines[1], "  tag 2  c") {
		t.Errorf("%+v", r)
	}
	sender(t, n, mailbox, func(ctx context.Context, p *xdpfab.Peer) error {
		return firstError(p.Send(ctx, []byte("ab")), p.Send(ctx, []byte("\n\x00")))
	})
	if r = n.run("", n.line("receive --raw --count 2")...); r.code != 0 || r.out != "ab\n\x00" {
		t.Errorf("%+v", r)
	}
	n.begun = func(client, _ *xdpfab.Domain) {
		if _, err := client.NewMailbox(xdpfab.MailboxAttr{Number: mailbox}); err != nil {
			t.Error(err)
		}
	}
	checkRefusal(t, "mailbox taken", n.run("", n.line("receive")...), exitFailed, "another program of this node receives at mailbox 5: end it, or choose another")
	n.begun = nil
	for line, want := range map[string]string{
		"receive --raw --wait 1ms":  "; Ctrl-C ends\n",
		"receive --wait 1ms":        ", until none came for 1ms; Ctrl-C ends\n",
		"receive -c 2 --wait 1ms":   ", until 2 messages came, or none came for 1ms; ",
		"receive --json --wait 1ms": "{",
	} {
		if r = n.run("", n.line(strings.Replace(line, "-c", "--count", 1))...); !strings.Contains(r.err, want) || strings.Contains(r.err, "receiving at ") == strings.Contains(line, "json") {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if got := new(receiveFlags).until(); got != ", without end: --wait or --count sets one" {
		t.Error(got)
	}
	for _, c := range []refusal{
		{"receive --wait 1ms", exitFailed, "no message came for 1ms, after 0 messages: `xdpfab send` at a peer sends one to PEER/5; wait longer with --wait"},
		{"receive --mailbox 0", exitUsage, "want 1 to 65534"},
		{"receive --size 4KB", exitUsage, "or of KiB, MiB, GiB or TiB"},
		{"receive --size 1GiB", exitUsage, "want at most 64 MiB"},
		{"receive --count -1", exitUsage, "want 0 or more"},
		{"receive --raw --json", exitUsage, "want one of"},
		{"receive --tag x", exitUsage, "want a 64-bit number"},
	} {
		checkRefusal(t, c.args, n.run("", n.line(c.args)...), c.code, c.say)
	}
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// watch prints the values that it finds, each once, until it finds the last one.
func TestWatchWord(t *testing.T) {
	n := newNode(t)
	word := n.mem.Bytes()[16:24]
	binary.LittleEndian.PutUint64(word, 5)
	var out lockedBuffer
	a := &app{open: n.open, in: strings.NewReader(""), out: &out, err: &out}
	done := make(chan int, 1)
	go func() {
		done <- a.run(context.Background(), append(n.line("watch PEER --region r --offset 16 --interval 1ms --until 7"), "--json"))
	}()
	for _, v := range []uint64{6, 7} {
		testnet.Eventually(t, "the value before is seen", func() bool { return strings.Contains(out.String(), fmt.Sprintf(`"value":"%d"`, v-1)) })
		binary.LittleEndian.PutUint64(word, v)
	}
	if code := <-done; code != 0 {
		t.Errorf("exit code %d, %s", code, out.String())
	}
	var all []change
	for line := range strings.Lines(out.String()) {
		var c change
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, c)
	}
	for i, want := range []change{{Value: "5"}, {Before: "5", Value: "6"}, {Before: "6", Value: "7"}} {
		if len(all) != 3 || all[i].Before != want.Before || all[i].Value != want.Value || all[i].Time.IsZero() {
			t.Fatalf("%+v, want %+v", all, want)
		}
	}
	if r := n.run("", n.line("watch PEER --key 0x51 --offset 24 --datatype double --until 0")...); r.code != 0 || !strings.HasSuffix(r.out, "  0\n") {
		t.Errorf("%+v", r)
	}
	for _, c := range []refusal{
		{"watch PEER --offset 8", exitUsage, "--offset is about an element"},
		{"watch PEER --region r --until x", exitUsage, "want an integer"},
		{"watch PEER --region r --datatype word", exitUsage, "want one of int8"},
		{"watch PEER --region r --interval -1s", exitUsage, "want 0 or more"},
		{"watch PEER --region absent", exitFailed, "no memory region of this name"},
	} {
		checkRefusal(t, c.args, n.run("", n.line(c.args)...), c.code, c.say)
	}
	// In a millisecond it may have connected, and said what it does, or not.
	if r := n.run("", n.line("watch PEER --wait 1ms")...); r.code != exitFailed || !strings.Contains(r.err, "xdpfab: gave up after 1ms: "+peerAddr) {
		t.Errorf("%+v", r)
	}
	r := n.run("", n.line("watch PEER --region r --until 9 --wait 1ms")...)
	if r.code != exitFailed || !regexp.MustCompile(`gave up after 1ms: (r\+0 (is 0|no value was read), not 9|\S+ has not answered by then): wait longer with --wait`).MatchString(r.err) {
		t.Errorf("%+v", r)
	}
}

// A peer that closes ends its watch, and so does a region that is withdrawn.
func TestWatchEnds(t *testing.T) {
	n := newNode(t)
	n.begun = func(_, server *xdpfab.Domain) {
		go func() {
			testnet.Eventually(t, "the client has a session", func() bool {
				s, err := server.Stats()
				return err == nil && s["sessions_accepted"] > 0
			})
			if err := server.CloseAll(); err != nil {
				t.Error(err)
			}
		}()
	}
	var r ran
	for range 50 { // a peer that closes before the dial has ended was never watched
		if r = n.run("", n.line("watch PEER")...); !strings.Contains(r.err, "connect on "+peerAddr) {
			break
		}
	}
	if r.code == 0 || !strings.Contains(r.err, peerAddr+" is gone: ") {
		t.Errorf("%+v", r)
	}
	n.begun = func(_, server *xdpfab.Domain) {
		open := len(n.opened) - 1
		go func() {
			testnet.Eventually(t, "the word is read", func() bool { return n.executed(open) > 10 })
			if err := server.CloseAll(); err != nil {
				t.Error(err)
			}
		}()
	}
	// Between two reads nothing is in flight that could be refused.
	r = n.run("", n.line("watch PEER --region r --interval 20ms")...)
	if r.code != exitUnreachable || !strings.Contains(r.err, peerAddr+" is gone: ") {
		t.Errorf("%+v", r)
	}
	n.begun = func(_, _ *xdpfab.Domain) {
		open := len(n.opened) - 1
		go func() {
			testnet.Eventually(t, "the word is read", func() bool { return n.executed(open) > 10 })
			if err := n.region.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	r = n.run("", n.line("watch PEER --region r --interval 0")...)
	if r.code != exitUnknown || !strings.Contains(r.err, "the region that was meant is gone") || !strings.HasSuffix(r.err, ": watch again to see the present one\n") {
		t.Errorf("%+v", r)
	}
}

// lockedBuffer is written by a command while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// list says which regions want an authorization key, which the next command has to prove.
func TestListKeyed(t *testing.T) {
	n := newNode(t)
	n.begun = func(_, server *xdpfab.Domain) {
		if _, err := server.Register(n.mem, mr.Options{Name: "safe", Access: mr.RemoteRead, AuthKey: []byte("0123456789abcdef")}); err != nil {
			t.Error(err)
		}
	}
	for _, e := range mustRun[[]regionEntry](n, "list PEER") {
		if e.AuthKey != (e.Name == "safe") {
			t.Errorf("%+v", e)
		}
	}
	if r := n.run("", n.line("list PEER")...); strings.Count(r.out, "(key)") != 1 || !strings.Contains(r.out, "read (key)\n") {
		t.Errorf("%+v", r)
	}
}
