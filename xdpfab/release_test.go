// SPDX-License-Identifier: Apache-2.0

package xdpfab

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
)

// Every call on a closed domain returns, however many came before it.
func TestCallsOnClosedDomain(t *testing.T) {
	for name, m := range map[string]ProgressMode{"auto": ProgressAuto, "manual": ProgressManual} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := pipe(t, DomainAttr{Progress: m}, DomainAttr{})
			ctx := context.Background()
			peer, err := a.Dial(ctx, b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			w, err := Word[uint64](ctx, peer, "r", 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(a.CloseAll(), b.CloseAll()); err != nil {
				t.Fatal(err)
			}
			testnet.Within(t, "calls", func() {
				for range 3 * a.dialer.attr.Size {
					if _, err := w.Add(ctx, 1); !errors.Is(err, ErrClosed) {
						t.Errorf("add on a closed domain: %v, want ErrClosed", err)
						return
					}
				}
			})
			testnet.Within(t, "watch", func() {
				if err := peer.Watch(ctx); !errors.Is(err, ErrClosed) {
					t.Errorf("watch on a closed domain: %v, want ErrClosed", err)
				}
			})
			testnet.Within(t, "dial", func() {
				if _, err := a.Dial(ctx, b.Name(0)); !errors.Is(err, ErrClosed) {
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
		for name, m := range map[string]ProgressMode{"auto": ProgressAuto, "manual": ProgressManual} {
			t.Run(fmt.Sprint(what, "/", name), func(t *testing.T) {
				a, b, _ := pipe(t, DomainAttr{Progress: m, GiveUp: time.Hour, IdleRetire: 3 * time.Hour}, DomainAttr{})
				defer b.CloseAll()
				defer a.CloseAll()
				ctx := context.Background()
				peer, err := a.Dial(ctx, b.Name(0))
				if err != nil {
					t.Fatal(err)
				}
				_ = a.SetFaults(Faults{Loss: 1})
				var calls sync.WaitGroup
				n := int32(a.dialer.attr.Size) + 200
				for range n {
					calls.Go(func() {
						if _, err := WordAt[uint64](peer, RemoteRegion{Key: 1}, 0).Load(ctx); !errors.Is(err, ErrClosed) {
							t.Errorf("%v, want ErrClosed", err)
						}
					})
				}
				testnet.Eventually(t, "all have posted or wait", func() bool {
					granted, waiting := allotment(a, peer.Addr()).Calls()
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
	dom, _ := openDead(t, 1, DomainAttr{Progress: ProgressManual})
	t.Cleanup(func() { _ = dom.CloseAll() })
	ep, err := dom.NewEndpoint(EndpointAttr{Number: 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	if s, err := ep.claim(nil, 0); err != nil || s.Way != calls.Direct {
		t.Fatalf("claim: way %v, %v", s.Way, err)
	} else {
		s.Verb = engine.VerbConnect // to no peer: it completes at once
		ep.hand(s)
	}
	if err := ep.drain(); err != nil { // as Shutdown does first
		t.Fatal(err)
	}
	if s, err := ep.claim(nil, 0); !errors.Is(err, ErrClosed) {
		if s.Way == calls.Direct {
			ep.stepper.Release()
		}
		t.Errorf("claimed while shutting down: way %v, %v, want ErrClosed", s.Way, err)
	}
}

// A goroutine may post from the beginning: it is refused until the endpoint is enabled,
// and then finds everything that was bound.
func TestPostDuringBind(t *testing.T) {
	a, b, _ := pipe(t)
	defer b.CloseAll()
	defer a.CloseAll()
	av, _ := a.NewAddressVector()
	cq, _ := a.NewCompletionQueue(CQAttr{})
	ep, _ := a.NewEndpoint(EndpointAttr{Number: AnyNumber})
	dest, err := av.Insert(t.Context(), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		m := Msg{Buf: make([]byte, 8), Dest: dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
		for {
			if err := ep.Atomic(&m, 0); !errors.Is(err, ErrNotEnabled) {
				done <- err
				return
			}
		}
	}()
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, BindSelective), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
