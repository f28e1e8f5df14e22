// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Every call on a closed domain returns, however many came before it.
func TestCallsOnClosedDomain(t *testing.T) {
	for name, m := range map[string]fi.ProgressMode{"auto": fi.ProgressAuto, "manual": fi.ProgressManual} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := servedPipe(t, fi.DomainAttr{Progress: m}, fi.DomainAttr{})
			ctx := context.Background()
			peer, err := a.Dial(ctx, b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			w, err := xdpfab.Word[uint64](ctx, peer, "r", 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(a.CloseAll(), b.CloseAll()); err != nil {
				t.Fatal(err)
			}
			testnet.Within(t, "calls", func() {
				for range 3 * a.Dialer().Attr().Size {
					if _, err := w.Add(ctx, 1); !errors.Is(err, fi.ErrClosed) {
						t.Errorf("add on a closed domain: %v, want ErrClosed", err)
						return
					}
				}
			})
			testnet.Within(t, "watch", func() {
				if err := peer.Watch(ctx); !errors.Is(err, fi.ErrClosed) {
					t.Errorf("watch on a closed domain: %v, want ErrClosed", err)
				}
			})
			testnet.Within(t, "dial", func() {
				if _, err := a.Dial(ctx, b.Name(0)); !errors.Is(err, fi.ErrClosed) {
					t.Errorf("dial on a closed domain: %v, want ErrClosed", err)
				}
			})
		})
	}
}

// Callers beyond the size of the ring wait for an entry. Closing the domain or the
// peer releases them along with those that wait for their operation.
func TestCloseReleasesFullRing(t *testing.T) {
	for _, what := range []string{"domain", "peer"} {
		for name, m := range map[string]fi.ProgressMode{"auto": fi.ProgressAuto, "manual": fi.ProgressManual} {
			t.Run(fmt.Sprint(what, "/", name), func(t *testing.T) {
				a, b, _ := servedPipe(t, fi.DomainAttr{Progress: m, GiveUp: time.Hour, IdleRetire: 3 * time.Hour}, fi.DomainAttr{})
				defer b.CloseAll()
				defer a.CloseAll()
				ctx := context.Background()
				peer, err := a.Dial(ctx, b.Name(0))
				if err != nil {
					t.Fatal(err)
				}
				_ = a.SetFaults(fi.Faults{Loss: 1})
				var calls sync.WaitGroup
				n := int32(a.Dialer().Attr().Size) + 200
				for range n {
					calls.Go(func() {
						if _, err := xdpfab.WordAt[uint64](peer, fi.RemoteRegion{Key: 1}, 0).Load(ctx); !errors.Is(err, fi.ErrClosed) {
							t.Errorf("%v, want ErrClosed", err)
						}
					})
				}
				testnet.Eventually(t, "all have posted or wait", func() bool {
					granted, waiting := a.Allotment(peer.Addr()).Calls()
					return waiting > 200 && granted+waiting == n
				})
				if what == "peer" {
					testnet.Within(t, "close", func() { _ = peer.Close() })
				} else {
					testnet.Within(t, "close", func() { _ = a.CloseAll() })
				}
				testnet.Within(t, "callers", calls.Wait)
			})
		}
	}
}

// An operation that is accepted while Shutdown begins is one that it waits for: a poster
// that has looked at the endpoint before is refused afterwards, whichever way it posts.
func TestShutdownRefusesLatePosters(t *testing.T) {
	dom, _ := openDead(t, 1, fi.DomainAttr{Progress: fi.ProgressManual})
	t.Cleanup(func() { _ = dom.CloseAll() })
	ep, err := dom.NewEndpoint(fi.EndpointAttr{Number: 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	if s, err := ep.Claim(0); err != nil || s.Way != calls.Direct {
		t.Fatalf("claim: way %v, %v", s.Way, err)
	} else {
		s.Verb = engine.VerbConnect // to no peer: it completes at once
		ep.Hand(s)
	}
	if err := ep.Drain(); err != nil { // as Shutdown does first
		t.Fatal(err)
	}
	if s, err := ep.Claim(0); !errors.Is(err, fi.ErrClosed) {
		if s.Way == calls.Direct {
			ep.Stepper().Release()
		}
		t.Errorf("claimed while shutting down: way %v, %v, want ErrClosed", s.Way, err)
	}
}

// A goroutine may post from the beginning: it is refused until the endpoint is enabled,
// and then finds everything that was bound.
func TestPostDuringBind(t *testing.T) {
	a, b, _ := servedPipe(t)
	defer b.CloseAll()
	defer a.CloseAll()
	av, _ := a.NewAddressVector()
	cq, _ := a.NewCompletionQueue(fi.CQAttr{})
	ep, _ := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	dest, err := av.Insert(t.Context(), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		m := fi.Msg{Buf: make([]byte, 8), Dest: dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
		for {
			if err := ep.Atomic(&m, 0); !errors.Is(err, fi.ErrNotEnabled) {
				done <- err
				return
			}
		}
	}()
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, fi.BindSelective), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
