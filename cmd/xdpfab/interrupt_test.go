// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// A copy that is interrupted finishes what was carried nevertheless, and tells whether it
// knows what became of the rest.
func TestChunksInterrupted(t *testing.T) {
	why := errors.New("interrupted")
	for _, c := range []struct {
		carried error // of the third chunk
		unknown bool
	}{{fmt.Errorf("%w: %w", xdpfab.ErrOutcomeUnknown, context.Canceled), true}, {context.Canceled, false}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		begun, finished := 0, 0
		err := chunks{
			next: func(k *chunk) (bool, error) {
				k.at, k.buf = uint64(begun), k.room[:1]
				begun++
				return true, nil
			},
			carry: func(ctx context.Context, k *chunk) error {
				if k.at < 2 {
					<-ctx.Done()
					return nil
				}
				if k.at == 2 {
					cancel(why)
				}
				return c.carried
			},
			finish: func(*chunk) error { finished++; return nil },
		}.run(ctx)
		if finished != 2 || !errors.Is(err, why) || errors.Is(err, xdpfab.ErrOutcomeUnknown) != c.unknown {
			t.Errorf("%v: %d chunks finished, %v", c.carried, finished, err)
		}
	}
}

// send says that a mailbox which is open takes no message, and goes on waiting.
func TestSendWaits(t *testing.T) {
	n := newNode(t)
	n.begun = func(_, server *xdpfab.Domain) {
		// nobody receives, and nothing longer than 64 bytes is kept
		if _, err := server.NewMailbox(xdpfab.MailboxAttr{Number: mailbox, Buffered: -1}); err != nil {
			t.Error(err)
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	var errs lockedBuffer
	a := &app{open: n.open, in: strings.NewReader(""), out: io.Discard, err: &errs}
	code := make(chan int, 1)
	go func() { code <- a.run(ctx, n.line("send PEER "+strings.Repeat("x", 100)+" --timeout 2s")) }()
	testnet.Eventually(t, "send has said that it waits", func() bool {
		return len(code) > 0 || strings.Contains(errs.String(), peerAddr+"/5 has not taken the message for 3s: its receiver is slow, or stopped")
	})
	interrupt()
	if is := <-code; is != exitUnknown && is != exitFailed || !strings.Contains(errs.String(), "Ctrl-C gives up\n") {
		t.Errorf("code %d, %s", is, errs.String())
	}
}

// A command that reads stdin ends when it is interrupted, though nobody types anything.
func TestInterruptedStdin(t *testing.T) {
	n := newNode(t)
	receiver(t, n)
	const sum = `{"op":"sum","dt":"uint64","buf":"0100000000000000"}` + "\n"
	for _, c := range []struct{ line, in, say string }{
		{"send PEER", "half", "nothing was sent"},
		{"send PEER --lines", "one\n", "1 message before it arrived"},
		{"atomic --batch - --peer PEER --region r", sum, "1 operation ran, 0 failed, those behind line 1 were not run"},
	} {
		ctx, interrupt := context.WithCancelCause(t.Context())
		in, typed := io.Pipe()
		var out, errs bytes.Buffer
		a := &app{open: n.open, in: in, out: &out, err: &errs}
		code := make(chan int)
		go func() { code <- a.run(ctx, n.line(c.line)) }()
		for _, part := range []string{c.in, "x", "y"} { // y is taken when x has been read, after c.in was done
			if _, err := io.WriteString(typed, part); err != nil {
				t.Error(err)
			}
		}
		interrupt(errors.New("interrupted"))
		if is := <-code; is != exitFailed || !strings.Contains(errs.String(), "interrupted") || !strings.Contains(errs.String(), c.say) {
			t.Errorf("%s: code %d, %q, %q", c.line, is, out.String(), errs.String())
		}
		_ = typed.Close()
	}
}

// A command that is interrupted before it has seen what it was to wait for has failed,
// and says what it has seen. One that waits without end has not.
func TestInterruptedWait(t *testing.T) {
	n := newNode(t)
	n.begun = func(client, _ *xdpfab.Domain) { n.mem.Bytes()[8] = 5 }
	for _, c := range []struct {
		line string
		code int
		say  string
	}{
		{"watch PEER --region r --offset 8 --interval 1ms --until 77", exitFailed, "interrupted: r+8 is 5, not 77"},
		{"watch PEER --region r --interval 1ms --count 3", exitFailed, "interrupted after 0 of 3 changes"},
		{"watch PEER --region r --interval 1ms --until 77 --json", exitFailed, `{"error":"interrupted: r+0 is 0, not 77","code":1}`},
		{"watch PEER --region r --interval 1ms", exitOK, ""},
	} {
		if r := n.interrupt(c.line, func() {}); r.code != c.code || c.say == "" && r.err != "" || !strings.Contains(r.err, c.say) {
			t.Errorf("%s: %+v, want code %d, %s", c.line, r, c.code, c.say)
		}
	}
	for line, code := range map[string]int{"receive --count 3": exitFailed, "receive": exitOK} {
		ctx, interrupt := context.WithCancel(t.Context())
		var errs lockedBuffer
		a := &app{open: n.open, in: strings.NewReader(""), out: io.Discard, err: &errs}
		done := make(chan int, 1)
		go func() { done <- a.run(ctx, n.line(line)) }()
		testnet.Eventually(t, line+" waits", func() bool { return strings.Contains(errs.String(), "Ctrl-C ends\n") })
		interrupt()
		if is := <-done; is != code || strings.Contains(errs.String(), "interrupted after 0 of 3 messages\n") != (code != exitOK) {
			t.Errorf("%s: code %d, %s", line, is, errs.String())
		}
	}
}
