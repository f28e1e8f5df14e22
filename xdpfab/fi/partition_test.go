// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A partition outlasts the give-up time; when it heals, what was unknown becomes
// a fact: with requests lost the operation never ran, with answers lost it did.
func TestResolveAfterPartition(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		for _, lost := range []string{"requests", "answers"} {
			t.Run(lost, func(t *testing.T) {
				clock, a := fi.NewClock(a)
				f := setUp(t, a, 64)
				p, err := f.client.Dial(ctx(t), f.server.Name(0))
				if err != nil {
					t.Fatal(err)
				}
				w := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0)
				if _, err := w.Add(ctx(t), 40); err != nil {
					t.Fatal(err)
				}
				side := cableOf(f.client)
				if lost == "answers" {
					side = f.server
				}
				_ = side.SetFaults(fi.Faults{Loss: 1})
				err = afterSilence(t, clock, f, func() error {
					_, err := w.Add(ctx(t), 2)
					return err
				})
				var oe *fi.OpError
				if !errors.Is(err, fi.ErrOutcomeUnknown) || !errors.As(err, &oe) {
					t.Fatalf("in a partition: %v", err)
				}
				_ = side.SetFaults(fi.Faults{})
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

// afterSilence returns what an operation on an unreachable peer returns, and has the
// client's time pass until it does.
func afterSilence(t *testing.T, clock *fi.Clock, f *fixture, op func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- op() }()
	testnet.Eventually(t, "the operation is given up", func() bool {
		clock.Forward(time.Second, cableOf(f.client).Domain)
		return len(done) > 0
	})
	return <-done
}

// A watch of a live peer goes on, for longer than a silent one would be given up,
// and ends with the peer.
func TestWatch(t *testing.T) {
	directModes(t, func(t *testing.T, a fi.DomainAttr) {
		ends := []struct {
			name string
			end  func(f *fixture, p *xdpfab.Peer)
			want error
		}{
			{"silence", func(f *fixture, _ *xdpfab.Peer) { _ = f.server.SetFaults(fi.Faults{Loss: 1}) }, fi.ErrPeerSilent},
			{"peer closes", func(f *fixture, _ *xdpfab.Peer) { _ = f.server.CloseAll() }, fi.ErrPeerClosed},
			{"closed here", func(_ *fixture, p *xdpfab.Peer) { _ = p.Close() }, fi.ErrClosed},
		}
		for _, e := range ends {
			t.Run(e.name, func(t *testing.T) {
				clock, a := fi.NewClock(a)
				f := setUp(t, a, 64)
				p, err := f.client.Dial(ctx(t), f.server.Name(0))
				if err != nil {
					t.Fatal(err)
				}
				watch := make(chan error, 1)
				go func() { watch <- p.Watch(ctx(t)) }()
				for start := clock.Ahead(); clock.Ahead() < start+3*f.client.Attr().GiveUp; {
					sent, received := counter(t, f.client, "packets_sent"), counter(t, f.client, "packets_received")
					testnet.Eventually(t, "a probe is sent", func() bool {
						clock.Forward(time.Second, f.client.Domain)
						return len(watch) > 0 || counter(t, f.client, "packets_sent") > sent
					})
					testnet.Eventually(t, "the probe is answered", func() bool {
						return len(watch) > 0 || counter(t, f.client, "packets_received") > received
					})
				}
				if len(watch) > 0 {
					t.Fatalf("watch of a live peer: %v", <-watch)
				}
				e.end(f, p)
				if e.want == fi.ErrPeerSilent {
					err = afterSilence(t, clock, f, func() error { return <-watch })
				} else {
					err = <-watch
				}
				if !errors.Is(err, e.want) {
					t.Errorf("%v, want %v", err, e.want)
				}
			})
		}
	})
}
