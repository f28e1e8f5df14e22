// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// A partition outlasts the give-up time; when it heals, what was unknown becomes
// a fact: with requests lost the operation never ran, with answers lost it did.
func TestResolveAfterPartition(t *testing.T) {
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		for _, lost := range []string{"requests", "answers"} {
			t.Run(lost, func(t *testing.T) {
				a.GiveUp = 150 * time.Millisecond
				f := setUp(t, a, 64)
				p, err := f.client.Dial(ctx(t), f.server.Address(0))
				if err != nil {
					t.Fatal(err)
				}
				w := xdpfab.WordAt[uint64](p, 1, 0)
				if _, err := w.Add(ctx(t), 40); err != nil {
					t.Fatal(err)
				}
				side := f.client
				if lost == "answers" {
					side = f.server
				}
				side.SetFaults(port.Faults{Loss: 1})
				_, err = w.Add(ctx(t), 2)
				var oe *xdpfab.OpError
				if !errors.Is(err, xdpfab.ErrOutcomeUnknown) || !errors.As(err, &oe) {
					t.Fatalf("in a partition: %v", err)
				}
				side.SetFaults(port.Faults{})
				ran, result, err := oe.Resolve(ctx(t))
				if err != nil || ran != (lost == "answers") {
					t.Fatalf("resolved: ran %v, %v", ran, err)
				}
				want := uint64(40)
				if ran {
					want = 42
					if got := binary.LittleEndian.Uint64(result); got != 40 {
						t.Errorf("fetched %d, want 40", got)
					}
				}
				if n, err := w.Load(ctx(t)); n != want || err != nil {
					t.Errorf("value %d, %v, want %d", n, err, want)
				}
			})
		}
	})
}

func TestWatch(t *testing.T) {
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		a.GiveUp = 150 * time.Millisecond
		ends := []struct {
			name string
			end  func(f *fixture, p *xdpfab.Peer)
			want error
		}{
			{"silence", func(f *fixture, _ *xdpfab.Peer) { f.server.SetFaults(port.Faults{Loss: 1}) }, xdpfab.ErrPeerSilent},
			{"peer closes", func(f *fixture, _ *xdpfab.Peer) { _ = f.server.Close() }, xdpfab.ErrPeerClosed},
			{"closed here", func(_ *fixture, p *xdpfab.Peer) { _ = p.Close() }, xdpfab.ErrClosed},
		}
		for _, e := range ends {
			t.Run(e.name, func(t *testing.T) {
				f := setUp(t, a, 64)
				p, err := f.client.Dial(ctx(t), f.server.Address(0))
				if err != nil {
					t.Fatal(err)
				}
				short, cancel := context.WithTimeout(ctx(t), 400*time.Millisecond)
				defer cancel()
				if err := p.Watch(short); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("watch of a live peer: %v", err)
				}
				errs := make(chan error)
				go func() { errs <- p.Watch(ctx(t)) }()
				time.Sleep(20 * time.Millisecond)
				e.end(f, p)
				if err := <-errs; !errors.Is(err, e.want) {
					t.Errorf("%v, want %v", err, e.want)
				}
			})
		}
	})
}
