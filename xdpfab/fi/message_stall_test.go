// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A call of Receive whose context ended returns within the give-up time, though a
// message has begun to go into its buffer and its sender has stopped. The sender learns
// that the message was not executed, and sends it again.
func TestMessageStalls(t *testing.T) {
	for _, attach := range []fi.AttachMode{fi.AttachAuto, fi.AttachAlways} { // of the receiver
		clock, attr := fi.NewClock(fi.DomainAttr{Attach: attach})
		x := setUpBoth(t, fi.DomainAttr{Progress: fi.ProgressManual, GiveUp: time.Hour}, attr, 64)
		box, err := x.server.NewMailbox(xdpfab.MailboxAttr{Number: 7})
		if err != nil {
			t.Fatal(err)
		}
		dest, err := x.av.Insert(ctx(t), box.Name())
		if err != nil {
			t.Fatal(err)
		}
		buf, data := make([]byte, 1<<20), bytes.Repeat([]byte("message."), 1<<17)
		waiting, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := box.Receive(waiting, buf)
			ended <- err
		}()
		if err := x.ep.Send(&fi.Message{Buf: data, Dest: dest}, 0); err != nil {
			t.Fatal(err)
		}
		executed := func() uint64 {
			n, err := cableOf(x.server).Stats()
			if err != nil {
				t.Error(err)
			}
			return n["requests_executed"]
		}
		testnet.Eventually(t, "the beginning of the message", func() bool {
			x.client.Progress()
			return executed() > 0
		})
		stop()
		testnet.Eventually(t, "the end of the call", func() bool { // the sender does nothing meanwhile
			clock.Forward(time.Second, cableOf(x.server).Domain)
			return len(ended) > 0
		})
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("receive: %v, want that its context has ended", err)
		}
		if c := x.take(t); !errors.Is(c.Err, fi.ErrNotExecuted) {
			t.Errorf("the message that stopped: %+v, want ErrNotExecuted", c)
		}
		if err := x.ep.Send(&fi.Message{Buf: data, Dest: dest}, 0); err != nil {
			t.Fatal(err)
		}
		go func() {
			m, err := box.Receive(ctx(t), buf)
			if err == nil && !bytes.Equal(m.Bytes, data) {
				err = errors.New("the message has other bytes")
			}
			ended <- err
		}()
		if c := x.take(t); c.Err != nil {
			t.Errorf("the message sent again: %+v", c)
		}
		if err := <-ended; err != nil {
			t.Errorf("receive of the message sent again: %v", err)
		}
	}
}

// take reads a completion of the client, which may be a failure.
func (f *fixture) take(t *testing.T) fi.Completion {
	t.Helper()
	b := bench{T: t, client: f.client}
	return b.take(f.cq, 1)[0]
}
