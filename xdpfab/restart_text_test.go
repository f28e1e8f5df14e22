// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// What meets a restart of the peer says what the program can do, whether the former
// process took leave or not.
func TestRestartSaysWhatToDo(t *testing.T) {
	const regions = "the memory may be new: find its regions again by their names, with Rebind or Lookup"
	never, lost := "not executed: peer restarted: ", "peer restarted: peer no longer knows the session: "
	for how, want := range map[string]struct {
		end  func(*xdpfab.Network) error
		says string
		is   []error
	}{
		"close": {func(w *xdpfab.Network) error { return w.Node(1).CloseAll() }, never,
			[]error{xdpfab.ErrPeerRestarted, xdpfab.ErrNotExecuted}},
		"crash": {func(w *xdpfab.Network) error { return w.Crash(1) }, lost, []error{xdpfab.ErrPeerRestarted}},
	} {
		w, err := xdpfab.NewNetwork(2)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		b := newBlocked()
		serve := func() {
			d := w.Node(1)
			if err := errors.Join(second(d.Serve("w", 64)), second(d.Handle(xdpfab.HandlerAttr{Number: 5}, b.answer)),
				second(d.NewMailbox(xdpfab.MailboxAttr{Number: 6}))); err != nil {
				t.Fatal(err)
			}
		}
		serve()
		dial := func(number uint16) *xdpfab.Peer {
			p, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(number))
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		memory, handler, mailbox := dial(0), dial(5), dial(6)
		if how == "crash" {
			called := call(t, ctx(t), handler, "hello", nil)
			<-b.has
			defer func() {
				checkText(t, how+", Call", <-called, want.says+"call it again", want.is...)
				close(b.may)
			}()
		}
		if err := errors.Join(want.end(w), second(w.Restart(1))); err != nil {
			t.Fatal(err)
		}
		serve()
		_, added := xdpfab.WordAt[uint64](memory, xdpfab.RemoteRegion{Key: 1}, 0).Add(ctx(t), 1)
		checkText(t, how+", Add", added, want.says+regions, want.is...)
		checkText(t, how+", Send", mailbox.Send(ctx(t), []byte("hello")), want.says+"send it again", want.is...)
	}
}
