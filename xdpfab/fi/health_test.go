// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// watchedDevice is a pipe's end that changes when a test says so.
type watchedDevice struct {
	node.PipeEnd
	mu sync.Mutex
	to func(port.Event) // nil once it is closed
}

func (d *watchedDevice) Watch(f func(port.Event)) { d.to = f }

func (d *watchedDevice) tell(e port.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.to != nil {
		d.to(e)
	}
}

func (d *watchedDevice) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to = nil
	return d.PipeEnd.Close()
}

// watchedPipe is a domain on such a device, and another at the far end.
func watchedPipe(t *testing.T, attr fi.DomainAttr, ofFar ...fi.DomainAttr) (near, far *xdpfab.Domain, dev *watchedDevice) {
	t.Helper()
	testnet.SkipOnNICs(t, "memory in place of an interface")
	pa, pb := port.NewMemoryPair(node.PipeMTU, 1)
	dev = &watchedDevice{PipeEnd: node.PipeEnd{Port: pa, Mac: wire.MAC{2, 0, 0, 0, 0, 0x0a}}}
	f, err := fi.NewFabric(attr)
	if err != nil {
		t.Fatal(err)
	}
	if near, err = on(f.Adopt(dev)); err != nil {
		t.Fatal(err)
	}
	if len(ofFar) > 0 {
		if f, err = fi.NewFabric(ofFar[0]); err != nil {
			t.Fatal(err)
		}
	}
	if far, err = on(f.Adopt(&node.PipeEnd{Port: pb, Mac: wire.MAC{2, 0, 0, 0, 0, 0x0b}})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(near.CloseAll(), far.CloseAll()); err != nil {
			t.Error(err)
		}
	})
	return near, far, dev
}

var cutOff = port.Event{Kind: port.Detached, Err: fmt.Errorf("%w: cut off", port.ErrLost)}

// The end of the interface releases everything that waits, with the cause, and is
// the answer to all that comes later.
func TestInterfaceLost(t *testing.T) {
	for name, m := range map[string]fi.ProgressMode{"auto": fi.ProgressAuto, "manual": fi.ProgressManual} {
		t.Run(name, func(t *testing.T) {
			// Nothing here ends by itself.
			near, far, dev := watchedPipe(t, fi.DomainAttr{Progress: m, GiveUp: time.Hour})
			if m == fi.ProgressManual {
				stop, stopped := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(stopped)
					for {
						select {
						case <-stop:
							return
						default:
							far.Progress()
						}
					}
				}()
				defer func() { close(stop); <-stopped }()
			}
			if _, err := far.NewRegion("r", 4096); err != nil {
				t.Fatal(err)
			}
			target, err := far.NewEndpoint(fi.EndpointAttr{})
			if err == nil {
				err = target.Enable()
			}
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			peer, err := near.Dial(ctx, far.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			word, err := xdpfab.Word[uint64](ctx, peer, "r", 0)
			if err != nil {
				t.Fatal(err)
			}
			ep, _ := near.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
			av, _ := near.NewAddressVector()
			cq, _ := near.NewCompletionQueue(fi.CQAttr{})
			if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
				t.Fatal(err)
			}
			dest, err := av.Insert(ctx, far.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			dev.Port.SetFaults(port.Faults{Loss: 1})
			if near.Err() != nil {
				t.Errorf("alive: %v", near.Err())
			}
			waits := map[string]func() error{
				"Add":   func() error { _, err := word.Add(ctx, 1); return err },
				"Watch": func() error { return peer.Watch(ctx) },
				"Dial":  func() error { _, err := near.Dial(ctx, "02:00:00:00:00:99"); return err },
				"Wait":  func() error { return cq.Wait(ctx, 1000) },
			}
			if err := ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Count: 1, Dest: dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
				t.Fatal(err)
			}
			results := make(chan error, len(waits))
			for what, f := range waits {
				go func() {
					err := f()
					if !errors.Is(err, fi.ErrInterfaceLost) || !strings.Contains(err.Error(), "cut off") {
						err = fmt.Errorf("%s: %w; want the cause", what, err)
					} else {
						err = nil
					}
					results <- err
				}()
			}
			for _, call := range []string{"xdpfab.Remote[...].Add", "xdpfab.(*Peer).Watch", "xdpfab.(*Domain).Dial", "fi.(*CompletionQueue).Wait"} {
				testnet.Blocked(t, 1, call)
			}
			dev.tell(cutOff)
			closedWithin(t, "Done", near.Done())
			for range waits {
				select {
				case err := <-results:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(time.Minute):
					t.Fatal("somebody still waits")
				}
			}
			if err := near.Err(); !errors.Is(err, fi.ErrInterfaceLost) {
				t.Errorf("Err: %v", err)
			}
			dev.tell(port.Event{Kind: port.Gone, Err: fmt.Errorf("%w: later", port.ErrLost)})
			later := map[string]error{"Err": near.Err()}
			_, later["Add"] = word.Add(ctx, 1)
			_, later["Dial"] = near.Dial(ctx, far.Name(0))
			_, later["NewEndpoint"] = near.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
			_, later["NewRegion"] = near.NewRegion("late", 4096)
			later["Atomic"] = ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Count: 1, Dest: dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0)
			if c, ok := cq.ReadErr(); ok {
				later["completion"] = c.Err
			} else {
				t.Error("no completion of the operation that was outstanding")
			}
			for what, err := range later {
				if !errors.Is(err, fi.ErrInterfaceLost) || !strings.Contains(fmt.Sprint(err), "cut off") {
					t.Errorf("%s afterwards: %v", what, err)
				}
			}
			if err := near.CloseAll(); err != nil {
				t.Error(err)
			}
			if err := near.Err(); !errors.Is(err, fi.ErrInterfaceLost) {
				t.Errorf("Err after Close: %v", err)
			}
		})
	}
}

func closedWithin(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s does not come", what)
	}
}

func TestDoneAfterClose(t *testing.T) {
	near, _, _ := watchedPipe(t, fi.DomainAttr{})
	if err := near.CloseAll(); err != nil {
		t.Fatal(err)
	}
	closedWithin(t, "Done", near.Done())
	near.Node().Happened(cutOff) // too late to be the cause
	if err := near.Err(); !errors.Is(err, fi.ErrClosed) || errors.Is(err, fi.ErrInterfaceLost) {
		t.Errorf("Err: %v", err)
	}
}

// Close and the interface's end at the same moment: one of them is the cause.
func TestCloseAsInterfaceIsLost(t *testing.T) {
	for range 50 {
		near, _, dev := watchedPipe(t, fi.DomainAttr{})
		var both sync.WaitGroup
		both.Go(func() { dev.tell(cutOff) })
		both.Go(func() { _ = near.CloseAll() })
		both.Wait()
		if near.Err() == nil {
			t.Fatal("no cause")
		}
	}
}

func TestChangesAreLogged(t *testing.T) {
	var out bytes.Buffer
	_, _, dev := watchedPipe(t, fi.DomainAttr{Log: slog.New(slog.NewTextHandler(&out, nil))})
	for e, want := range map[port.Event]string{
		{Kind: port.AddressAdded, To: "10.0.0.7"}:                           `level=INFO msg="address added, and served" interface=pipe to=10.0.0.7`,
		{Kind: port.AddressRemoved, From: "10.0.0.7"}:                       "from=10.0.0.7",
		{Kind: port.Unaddressed}:                                            "level=WARN",
		{Kind: port.Down, To: "it was set down"}:                            `cause="it was set down"`,
		{Kind: port.Up}:                                                     "up again",
		{Kind: port.Renamed, From: "a", To: "b"}:                            "from=a to=b",
		{Kind: port.Renamed}:                                                "level=WARN",
		{Kind: port.MTUChanged, From: "1500", To: "3000"}:                   "from=1500 to=3000",
		{Kind: port.HopChanged, Remote: "10.0.0.2", From: "one", To: "two"}: "peer=10.0.0.2 from=one to=two",
		{Kind: port.Trouble, To: "what"}:                                    "level=WARN",
		cutOff:                                                              `level=ERROR msg="XDP program detached" cause=`,
	} {
		out.Reset()
		dev.tell(e)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%+v: logged %q, want %q", e, out.String(), want)
		}
	}
}

// A program whose poller can have the only processor that Go has is told so, once for a
// domain; one without a poller is not.
func TestTooFewProcessorsAreLogged(t *testing.T) {
	had := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(had)
	for _, c := range []struct {
		processors int
		progress   fi.ProgressMode
		lines      int
	}{{1, fi.ProgressAuto, 1}, {2, fi.ProgressAuto, 0}, {1, fi.ProgressManual, 0}} {
		runtime.GOMAXPROCS(c.processors)
		var out bytes.Buffer
		watchedPipe(t, fi.DomainAttr{Progress: c.progress, Log: slog.New(slog.NewTextHandler(&out, nil))}, fi.DomainAttr{})
		if n := strings.Count(out.String(), "GOMAXPROCS=1 want=2"); n != c.lines {
			t.Errorf("%d processors, progress %v: %d lines of them, want %d, in %q", c.processors, c.progress, n, c.lines,
				out.String())
		}
	}
}
