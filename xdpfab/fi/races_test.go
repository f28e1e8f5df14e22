// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func servedPipe(t *testing.T, attr ...fi.DomainAttr) (a, b *xdpfab.Domain, mem []byte) {
	t.Helper()
	testnet.SkipOnNICs(t, "a Pipe")
	a, b, err := xdpfab.Pipe(attr...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.NewRegion("r", 4096)
	if err != nil {
		t.Fatal(err)
	}
	ep, err := b.NewEndpoint(fi.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	return a, b, r.Bytes()
}

// A goroutine that waits for completions is released when the domain closes, and no
// thread steps the engine of a closed device.
func TestWaitDuringClose(t *testing.T) {
	for name, m := range map[string]fi.ProgressMode{"auto": fi.ProgressAuto, "manual": fi.ProgressManual} {
		for _, what := range []string{"cq", "counter"} {
			t.Run(name+"/"+what, func(t *testing.T) {
				a, b, _ := servedPipe(t, fi.DomainAttr{Progress: m}, fi.DomainAttr{})
				defer b.CloseAll()
				av, _ := a.NewAddressVector()
				cq, _ := a.NewCompletionQueue(fi.CQAttr{})
				cn, _ := a.NewCounter()
				ep, _ := a.NewEndpoint(fi.EndpointAttr{})
				if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Bind(cn, fi.BindWrite), ep.Enable()); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), testnet.Patience)
				defer cancel()
				errc := make(chan error)
				go func() {
					if what == "cq" {
						errc <- cq.Wait(ctx, 1)
					} else {
						errc <- cn.Wait(ctx, 1)
					}
				}()
				testnet.Blocked(t, 1, map[string]string{"cq": "fi.(*CompletionQueue).Wait", "counter": "fi.(*Counter).Wait"}[what])
				if err := a.CloseAll(); err != nil {
					t.Error(err)
				}
				if err := <-errc; errors.Is(err, context.DeadlineExceeded) {
					t.Error("Close did not end the wait")
				} else {
					t.Log(err)
				}
			})
		}
	}
}

// deadPort notes uses after the device has been closed.
type deadPort struct {
	*port.Memory
	closed *atomic.Bool
	bad    *atomic.Int64
}

func (p deadPort) Receive(b [][]byte) int {
	if p.closed.Load() {
		p.bad.Add(1)
	}
	return p.Memory.Receive(b)
}

type deadDevice struct {
	node.Device
	ports  []engine.Port
	closed atomic.Bool
	bad    atomic.Int64
}

func (d *deadDevice) Ports() []engine.Port { return d.ports }
func (d *deadDevice) Close() error         { d.closed.Store(true); return nil }

func openDead(t *testing.T, queues int, attr fi.DomainAttr) (*xdpfab.Domain, *deadDevice) {
	t.Helper()
	d := &deadDevice{Device: &node.PipeEnd{Mac: wire.MAC{2, 0, 0, 0, 0, 1}}}
	for i := range queues {
		pa, _ := port.NewMemoryPair(node.PipeMTU, uint64(i))
		d.ports = append(d.ports, deadPort{pa, &d.closed, &d.bad})
	}
	f, err := fi.NewFabric(attr)
	if err != nil {
		t.Fatal(err)
	}
	dom, err := f.Adopt(d)
	if err != nil {
		t.Fatal(err)
	}
	return &xdpfab.Domain{Domain: dom}, d
}

// Reading the completions left in a queue after Close must not touch the unmapped device.
func TestReadAfterClose(t *testing.T) {
	dom, dev := openDead(t, 1, fi.DomainAttr{Progress: fi.ProgressManual})
	cq, err := dom.NewCompletionQueue(fi.CQAttr{})
	if err != nil {
		t.Fatal(err)
	}
	cn, _ := dom.NewCounter()
	if err := dom.CloseAll(); err != nil {
		t.Fatal(err)
	}
	var c [1]fi.Completion
	_, _ = cq.Read(c[:])
	cn.Read()
	dom.Progress()
	if n := dev.bad.Load(); n > 0 {
		t.Errorf("the closed device was used %d times", n)
	}
}

// sleepLong makes idle engines sleep until they are woken, and returns a context
// that ends before they would wake by themselves, but not soon: it may be that of many
// operations, which take long on a busy machine.
func sleepLong(t *testing.T) context.Context {
	t.Helper()
	was := node.MaxSleep
	node.MaxSleep = time.Hour
	t.Cleanup(func() { node.MaxSleep = was })
	ctx, cancel := context.WithTimeout(context.Background(), 10*testnet.Patience)
	t.Cleanup(cancel)
	return ctx
}

// Completions of one endpoint end the wait of a goroutine that reads for another.
func TestSharedQueueWakes(t *testing.T) {
	ctx := sleepLong(t)
	dom, _ := openDead(t, 2, fi.DomainAttr{})
	defer dom.CloseAll()
	av, _ := dom.NewAddressVector()
	cq, _ := dom.NewCompletionQueue(fi.CQAttr{})
	var eps [2]*fi.Endpoint
	for i := range eps {
		eps[i], _ = dom.NewEndpoint(fi.EndpointAttr{Number: i})
		if err := errors.Join(eps[i].Bind(av, 0), eps[i].Bind(cq, 0), eps[i].Enable()); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		go func() {
			testnet.Blocked(t, 1, "fi.(*CompletionQueue).Wait")
			nobody, _ := av.Insert(context.Background(), "02:00:00:00:00:77")
			_ = eps[1].Atomic(&fi.Msg{Buf: make([]byte, 8), Count: 1, Dest: nobody, Key: 1, Datatype: 7, Op: 2}, 0)
			_ = av.Remove(nobody) // completes it
		}()
		if err := cq.Wait(ctx, 1); err != nil {
			t.Fatal(err)
		}
		cq.ReadErr()
	}
}

// Counter.Add from another goroutine ends a wait.
func TestCounterAddWakes(t *testing.T) {
	ctx := sleepLong(t)
	dom, _ := openDead(t, 1, fi.DomainAttr{})
	defer dom.CloseAll()
	av, _ := dom.NewAddressVector()
	cn, _ := dom.NewCounter()
	ep, _ := dom.NewEndpoint(fi.EndpointAttr{})
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cn, fi.BindRead|fi.BindWrite), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	go func() { testnet.Blocked(t, 1, "fi.(*Counter).Wait"); cn.Add(1) }()
	if err := cn.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
}

// noisyPort always has a packet that is not for us.
type noisyPort struct{ *port.Memory }

func (p noisyPort) Receive(b [][]byte) int { b[0] = make([]byte, 60); return 1 }

// The context ends a wait also while the engine is busy serving others.
func TestContextUnderLoad(t *testing.T) {
	d := &deadDevice{Device: &node.PipeEnd{Mac: wire.MAC{2, 0, 0, 0, 0, 1}}}
	pa, _ := port.NewMemoryPair(node.PipeMTU, 1)
	d.ports = []engine.Port{noisyPort{pa}}
	f, _ := fi.NewFabric(fi.DomainAttr{})
	dom, err := f.Adopt(d)
	if err != nil {
		t.Fatal(err)
	}
	cq, _ := dom.NewCompletionQueue(fi.CQAttr{})
	av, _ := dom.NewAddressVector()
	ep, _ := dom.NewEndpoint(fi.EndpointAttr{Number: 5})
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	done := make(chan struct{})
	go func() { _ = cq.Wait(ctx, 1); close(done) }()
	select {
	case <-done:
	case <-time.After(testnet.Patience):
		t.Errorf("a wait of 50 ms still lasts after %v", testnet.Patience)
	}
	_ = dom.CloseAll()
}

func TestCounterBinding(t *testing.T) {
	dom, _ := openDead(t, 1, fi.DomainAttr{})
	defer dom.CloseAll()
	c1, _ := dom.NewCounter()
	c2, _ := dom.NewCounter()
	ep, _ := dom.NewEndpoint(fi.EndpointAttr{})
	if err := errors.Join(ep.Bind(c1, fi.BindWrite)); err != nil {
		t.Fatal(err)
	}
	if err := ep.Bind(c2, fi.BindRead|fi.BindWrite); !errors.Is(err, fi.ErrBusy) {
		t.Fatal(err)
	}
	_ = ep.Close()
	if n := c2.Users(); n != 0 {
		t.Errorf("refused counter has %d users", n)
	}
	ep, _ = dom.NewEndpoint(fi.EndpointAttr{})
	c3, _ := dom.NewCounter()
	if err := errors.Join(ep.Bind(c3, fi.BindRead), ep.Bind(c3, fi.BindWrite), ep.Close(), c3.Close()); err != nil {
		t.Errorf("counter bound for each direction in turn: %v", err)
	}
}

// A closed endpoint accepts nothing any more.
func TestClosedEndpointStillServes(t *testing.T) {
	a, b, _ := servedPipe(t, fi.DomainAttr{})
	defer a.CloseAll()
	defer b.CloseAll()
	p, err := a.Dial(context.Background(), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](context.Background(), p, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = b.EndpointAt(0).Close()
	if _, err := w.Add(context.Background(), 1); err == nil {
		t.Error("an operation addressed to a closed endpoint succeeded")
	}
}

func TestDialTakesNumberOne(t *testing.T) {
	a, b, _ := servedPipe(t, fi.DomainAttr{})
	defer a.CloseAll()
	defer b.CloseAll()
	if _, err := a.Dial(context.Background(), b.Name(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.NewEndpoint(fi.EndpointAttr{Number: 1}); err != nil {
		t.Error(err)
	}
}

// Dial and Close again and again, and Register and Close again and again, leave
// nothing behind.
func TestGrowth(t *testing.T) {
	a, b, _ := servedPipe(t, fi.DomainAttr{})
	defer a.CloseAll()
	defer b.CloseAll()
	for range 200 {
		p, err := a.Dial(context.Background(), b.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Close()
		m, _ := mr.Adopt(make([]byte, 1<<16))
		r, err := a.Register(m, mr.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
	}
	if n := a.Dialer().Peers(); n > 0 {
		t.Errorf("%d peers kept", n)
	}
	if n := len(a.Node().Table.All()); n > 0 {
		t.Errorf("%d closed regions kept, with the memory of each", n)
	}
}

func TestPeerNameAfterRemove(t *testing.T) {
	a, b, _ := servedPipe(t, fi.DomainAttr{Progress: fi.ProgressAuto})
	defer a.CloseAll()
	defer b.CloseAll()
	p, err := a.Dial(context.Background(), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	_ = b.CloseAll()
	errc := make(chan error, 1)
	go func() { _, err := p.Lookup(context.Background(), "r"); errc <- err }()
	// It has ended already if the peer's farewell came after it had posted.
	testnet.Eventually(t, "the look-up waits, or has ended", func() bool {
		return len(errc) > 0 || testnet.Waiting("xdpfab.(*Peer).Lookup") > 0
	})
	_ = p.Close()
	err = <-errc
	var oe *fi.OpError
	if errors.As(err, &oe) && oe.Peer != b.Name(0) && oe.Peer != p.Addr() {
		t.Errorf("error names peer %q: %v", oe.Peer, err)
	} else {
		t.Log(err)
	}
}

// A call whose context ends behind a poster that was stopped before Publish never runs,
// and says so.
func TestContextEndsBehindStoppedPoster(t *testing.T) {
	a, b, _ := servedPipe(t, fi.DomainAttr{})
	defer b.CloseAll()
	defer a.CloseAll()
	p, err := a.Dial(context.Background(), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](context.Background(), p, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	stopped, err := a.Dialer().ClaimEntry()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = w.Add(ctx, 1)
	var oe *fi.OpError
	if !errors.Is(err, fi.ErrNotExecuted) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &oe) || oe.Open() {
		t.Errorf("%v, want ErrNotExecuted and the context's error", err)
	}
	stopped.Release()
	if sum, err := w.Add(context.Background(), 5); err != nil || sum != 5 {
		t.Errorf("afterwards the sum is %d, %v, want 5", sum, err)
	}
}

// An operation that was posted with success completes, also when Close comes in between:
// one poster is stopped between its look at the phase of the endpoint and Publish, and
// another goroutine has posted behind it.
func TestPostDuringCloseExactly(t *testing.T) {
	a, b, _ := servedPipe(t, fi.DomainAttr{})
	defer b.CloseAll()
	defer a.CloseAll()
	av, _ := a.NewAddressVector()
	cq, _ := a.NewCompletionQueue(fi.CQAttr{})
	ep, _ := a.NewEndpoint(fi.EndpointAttr{Number: 3})
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	dest, _ := av.Insert(context.Background(), b.Name(0))
	peer, _ := ep.Peer(dest)
	cq.Reserve()
	op, err := ep.ClaimEntry() // the first poster, preempted here
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Count: 1, Dest: dest, Key: 1, Datatype: 7, Op: 2}, 0); err != nil {
		t.Fatal(err)
	}
	go func() {
		testnet.Blocked(t, 1, "fi.(*Endpoint).Close")
		op.Peer, op.Context, op.Verb, op.Datatype, op.Count, op.Flags, op.Opcode = peer, ep, wire.VerbAtomic, 7, 1, 0, 2
		op.SetOperands(make([]byte, 8), nil)
		op.Publish()
		ep.Stepper().Eng.Notify()
	}()
	_ = ep.Close()
	testnet.Eventually(t, "both operations complete", func() bool { return cq.Tail() == 2 })
}

// Only the cable of a Pipe, and UDP sockets, have faults to order.
func TestFaultsWantAPipe(t *testing.T) {
	dom, _ := openDead(t, 1, fi.DomainAttr{})
	defer dom.CloseAll()
	if err := dom.SetFaults(fi.Faults{Loss: 1}); !errors.Is(err, fi.ErrNotImplemented) {
		t.Errorf("%v, want ErrNotImplemented", err)
	}
}
