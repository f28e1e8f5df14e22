// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// What a process had is over when another one answers at its address, also if that serves
// nothing: Settle tells at once, and does not wait for the minute after which a silent
// peer is forgotten.
func TestSettleAfterRestartWithoutService(t *testing.T) {
	for name, early := range map[string]bool{"while the message waits": true, "after it was given up": false} {
		t.Run(name, func(t *testing.T) {
			w := newNetwork(t, 2, xdpfab.DomainAttr{GiveUp: 2 * time.Second})
			box, err := w.Node(1).NewMailbox(xdpfab.MailboxAttr{Number: 5})
			if err != nil {
				t.Fatal(err)
			}
			p, err := w.Node(0).Dial(ctx(t), box.Name())
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Send(ctx(t), []byte("one")); err != nil {
				t.Fatal(err)
			}
			if err := w.SetFaults(1, 0, xdpfab.Faults{Loss: 1}); err != nil { // the message arrives, its answer does not
				t.Fatal(err)
			}
			sent := make(chan error, 1)
			go func() { sent <- p.Send(ctx(t), []byte("two")) }()
			for range 2 { // both are there
				if _, err := box.Receive(ctx(t), make([]byte, 8)); err != nil {
					t.Fatal(err)
				}
			}
			again := func() {
				if _, err := w.Restart(1); err != nil {
					t.Error(err)
				}
				if err := w.SetFaults(1, 0, xdpfab.Faults{}); err != nil {
					t.Error(err)
				}
			}
			if early {
				again()
				err = <-sent
			} else {
				err = <-sent
				again()
			}
			if !errors.Is(err, xdpfab.ErrOutcomeUnknown) && !errors.Is(err, xdpfab.ErrPeerRestarted) {
				t.Fatalf("%v", err)
			}
			if err := xdpfab.SettleError(ctx(t), err); !errors.Is(err, xdpfab.ErrPeerRestarted) {
				t.Errorf("%v, want ErrPeerRestarted", err) // after a minute it is ErrOutcomeUnknown
			}
		})
	}
}
