// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// open makes a session by a first operation.
func (w *world) open(o *outcomes) *engine.Peer {
	w.t.Helper()
	p, err := w.a.NewPeer(wire.Link{Local: macs[0], Remote: macs[1]}, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	w.add(p, o, residentKey, 0, atomic.Uint64, nil)
	w.until(func() bool { return o.n == 1 })
	if o.bad != 0 {
		w.t.Fatalf("%+v (%v)", o.last, w.serverErr)
	}
	return p
}

// The program serves a session while there is no process that could help it, also when
// frames are lost, and the process goes on with it afterwards.
func TestNobodyThere(t *testing.T) {
	w := newWorld(t, 3)
	var o outcomes
	p := w.open(&o)
	for lane := range uint32(64) {
		if err := w.x.objects.Sockets.Delete(lane); err != nil {
			t.Fatal(err)
		}
	}
	w.absent = true
	f := port.Faults{Loss: 0.1, Duplicate: 0.2, Reorder: 0.2, Corrupt: 0.05}
	w.pa.SetFaults(f)
	w.nic.SetFaults(f)
	const n = 2000
	for i := range n {
		w.until(func() bool { return w.add(p, &o, residentKey, 8*uint64(i%2), atomic.Uint64, nil) })
	}
	w.until(func() bool { return o.n == n+1 })
	w.absent = false
	addSocket(t, w.x)
	for range n {
		w.until(func() bool { return w.add(p, &o, residentKey, 0, atomic.Uint64, nil) })
	}
	w.until(func() bool { return o.n == 2*n+1 })
	le := binary.LittleEndian
	if a, b := le.Uint64(w.words), le.Uint64(w.words[8:]); o.bad > 0 || a != n/2+n+1 || b != n/2 {
		t.Errorf("the words hold %d and %d, want %d and %d; %d failed, the last %+v", a, b, n/2+n+1, n/2, o.bad, o.last)
	}
}

// A session that ends tells which operations never ran, and gives its place back.
func TestEnd(t *testing.T) {
	w := newWorld(t, 3)
	var o outcomes
	p := w.open(&o)
	if n := len(w.x.free); n != 3 {
		t.Fatalf("%d places are free, want 3", n)
	}
	w.b.Close()
	w.until(func() bool { return w.b.Idle() && len(w.x.free) == 4 })
	w.add(p, &o, residentKey, 0, atomic.Uint64, nil)
	w.until(func() bool { return o.n == 2 })
	if o.last.Outcome != engine.NotExecuted || binary.LittleEndian.Uint64(w.words) != 1 {
		t.Errorf("%+v; the word holds %d", o.last, binary.LittleEndian.Uint64(w.words))
	}
	if n, err := count(w.x); n != 0 || err != nil {
		t.Errorf("%d sessions are left, %v", n, err)
	}
}

// count returns how many sessions the program knows.
func count(x *Executor) (n int, err error) {
	var id, place uint32
	all := x.objects.Places.Iterate()
	for all.Next(&id, &place) {
		n++
	}
	return n, all.Err()
}

// A frame whose checksum is right and whose payload is not ends the session, as with the
// executor in Go; nothing of it runs.
func TestMalformed(t *testing.T) {
	w := newWorld(t, 3)
	var o outcomes
	w.open(&o)
	s, err := w.x.state(w.x.lastPlace(t))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	h := wire.Header{Type: wire.Request, Session: s.Id, Epoch: s.Epoch, PSN: s.Expected, Ack: s.Expected - 1, Ops: 3}
	h.Put(b)
	b[wire.HeaderLen] = byte(wire.VerbAtomic)
	there, err := wire.NewTemplate(wire.Link{Local: macs[0], Remote: macs[1]})
	if err != nil {
		t.Fatal(err)
	}
	packet := w.pa.Buffer()
	copy(packet[there.Len():], b)
	w.pa.Send(there.Put(packet, wire.Seal(packet[there.Len():], len(b))))
	w.until(func() bool { return len(w.x.free) == 4 })
	if got := binary.LittleEndian.Uint64(w.words); got != 1 {
		t.Errorf("the word holds %d, want 1", got)
	}
}

// lastPlace returns the place of the only session.
func (x *Executor) lastPlace(t *testing.T) (place uint32) {
	t.Helper()
	var id uint32
	all := x.objects.Places.Iterate()
	if !all.Next(&id, &place) {
		t.Fatal("there is no session")
	}
	return place
}

// What cannot be is refused, and says what can.
func TestRefusals(t *testing.T) {
	for _, c := range []Config{{Sessions: -1}, {Sessions: MaxSessions + 1}, {Regions: -1}, {Regions: MaxRegions + 1}} {
		if _, err := Load(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	x := mustLoad(t, Config{Sessions: 1, Regions: 1})
	if _, err := NewMemory("none", 0); !errors.Is(err, ErrConfig) {
		t.Errorf("no bytes: %v", err)
	}
	m, err := NewMemory("a name/with more than fifteen", 100)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, r := range []Region{{Length: 0}, {Length: 101}, {Length: 100, Base: 4}, {Length: 100, Access: 4}} {
		if err := x.Register(m, r); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for i, want := range []error{nil, ErrFull} {
		if err := x.Register(m, Region{Key: uint64(i), Length: 100}); !errors.Is(err, want) {
			t.Errorf("region %d: %v, want %v", i, err, want)
		}
	}
	if err := x.Deregister(0); err != nil {
		t.Error(err)
	}
	if err := x.Deregister(0); err == nil {
		t.Error("deregistered twice")
	}
	if err := x.Register(m, Region{Key: 1, Length: 100}); err != nil {
		t.Errorf("after another one has gone: %v", err)
	}
	v, err := x.NewServer(nil, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := session.TargetParams{Local: wire.NewSessionID(0, 0, 1, 1), MaxFrame: 1500, Window: 64}
	for i, want := range []error{nil, ErrFull} {
		p.Local++
		if _, err := v.Begin(1, p); !errors.Is(err, want) {
			t.Errorf("session %d: %v, want %v", i, err, want)
		}
	}
	p.MaxFrame = MaxFrame + 1
	if _, err := v.Begin(1, p); !errors.Is(err, ErrConfig) {
		t.Errorf("long frames: %v", err)
	}
}

// An old kernel is told by trying: the error says so.
func TestOldKernel(t *testing.T) {
	testnet.Require(t)
	if !testnet.KernelBefore(t, 5, 18) {
		t.Skip("this kernel can execute requests")
	}
	if x, err := Load(Config{}); !errors.Is(err, ErrKernel) {
		t.Errorf("%v, %v; want %v", x, err, ErrKernel)
	} else {
		t.Log(err)
	}
}

// A frame that comes to user space, and its answer, take no allocation.
func TestReceiveDoesNotAllocate(t *testing.T) {
	x := mustLoad(t, Config{Sessions: 1, Regions: 1})
	m, err := NewMemory("words", 64)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := x.Register(m, Region{Key: residentKey, Length: 64, Access: RemoteRead | RemoteWrite}); err != nil {
		t.Fatal(err)
	}
	v, err := x.NewServer(nil, 0, func() int64 { return 1 })
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.Begin(1, killed)
	if err != nil {
		t.Fatal(err)
	}
	psn, out := session.FirstPSN(killed.Epoch), make([]byte, 2048)
	h, payload, reason := wire.Parse(addFrame(psn))
	if reason != wire.ReasonOK {
		t.Fatal(reason)
	}
	one := func() {
		h.PSN, h.Ack = psn, psn-1
		if o := s.Receive(1, &h, payload, out); o.Frames != 1 || o.Answer == 0 {
			t.Fatalf("%+v", o)
		}
		h.PSN++
		if o := s.Receive(1, &h, payload, nil); o.Frames != 1 || s.Emit(out) == 0 {
			t.Fatalf("%+v", o)
		}
		psn += 2
	}
	if n := testing.AllocsPerRun(100, one); n != 0 {
		t.Errorf("%v allocations for two frames", n)
	}
}
