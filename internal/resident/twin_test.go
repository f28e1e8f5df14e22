// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"bytes"
	"math/bits"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Verdicts, from linux/bpf.h.
const (
	xdpDrop     = 1
	xdpTX       = 3
	xdpRedirect = 4
)

const metadata = 32 // bytes before an answer: see META

// mustExecute skips the test on a kernel that cannot execute requests.
func mustExecute(t testing.TB) {
	t.Helper()
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18: bpf_loop and helpers that copy packets")
	}
}

// mustLoad loads an executor for a test, which is skipped without privilege.
func mustLoad(t testing.TB, cfg Config) *Executor {
	t.Helper()
	mustExecute(t)
	x, err := Load(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return x
}

// addSocket gives every lane of queue 0 an AF_XDP socket, so that frames go to user
// space.
func addSocket(t testing.TB, x *Executor) {
	t.Helper()
	fd := testnet.XDPSocket(t).Fd()
	for lane := range uint32(64) {
		if err := x.objects.Sockets.Put(lane, uint32(fd)); err != nil {
			t.Fatal(err)
		}
	}
}

// The regions of a twin: what each grants, and whether peers give virtual addresses.
var twinRegions = []struct {
	key     uint64
	access  mr.Access
	virtual bool
	size    int
}{
	{0x1111, mr.RemoteRead | mr.RemoteWrite, false, 4096},
	{0x2222, mr.RemoteRead, false, 64},
	{0x3333, mr.RemoteWrite, false, 64},
	{0x4444, mr.RemoteRead | mr.RemoteWrite, true, 512},
	{0x5555, mr.RemoteRead | mr.RemoteWrite, false, 61},
}

const strangerKey = 0x9999 // of no region

// twin is one session twice: of the program, and of the executor in Go.
type twin struct {
	t       testing.TB
	x       *Executor
	c       *caller
	place   uint32
	params  session.TargetParams
	sockets bool // there is a user space
	handed  bool // it was given a frame in want of an answer

	go_   *executor.Session
	mem   *memory.Memory
	table *mr.Table
	now   int64

	words   [][]byte // of the program's regions
	twins   [][]byte // of the executor's
	base    []uint64
	born    []uint32
	tallies []tallied

	there, back wire.Template // headers of requests and of answers
	kernelHeard uint64
	goHeard     int64
	buf, out    []byte
}

// setting is a sort of session.
type setting struct {
	kind      wire.Kind
	vlan      uint16
	class     wire.Class
	unordered bool
	frame     int
	sockets   bool
}

func newTwin(t testing.TB, o setting) *twin {
	t.Helper()
	w := &twin{t: t, x: mustLoad(t, Config{Sessions: 2, Regions: len(twinRegions)}), sockets: o.sockets, table: mr.NewTable(), buf: make([]byte, 4096), out: make([]byte, 4096)}
	if o.sockets {
		addSocket(t, w.x)
	}
	w.c = newCaller(w.x.objects.XdpfabCall)
	w.addRegions()
	w.params = session.TargetParams{Local: wire.NewSessionID(5, 0, 77, 3), Remote: 0xabcdef01, Epoch: 0x80000001, MaxFrame: o.frame, Window: 64, Kind: o.kind, Class: o.class}
	if o.unordered {
		w.params.Features = wire.FeatureUnordered
	}
	var err error
	if w.place, err = w.x.begin(w.c, &w.params, session.FirstPSN(w.params.Epoch), 0); err != nil {
		t.Fatal(err)
	}
	w.mem = memory.New(w.table)
	t.Cleanup(w.mem.Close)
	x, err := executor.New(w.mem, max(o.frame, wire.MinMTU), 0)
	if err != nil {
		t.Fatal(err)
	}
	w.now = 1
	w.go_ = x.Begin(w.now, w.params, nil)
	w.addHeaders(o)
	w.kernelHeard, w.goHeard = w.state().Heard, w.go_.HeardAt()
	return w
}

func (w *twin) addRegions() {
	for i, r := range twinRegions {
		m, err := NewMemory("twin", r.size)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() {
			if err := m.Close(); err != nil {
				w.t.Error(err)
			}
		})
		of, err := mr.Alloc(r.size, mr.AllocOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		region, err := w.table.Register(of, mr.Options{Key: &r.key, Access: r.access, Virtual: r.virtual, Length: r.size})
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { region.Close(); of.Close() })
		if err := w.x.Register(m, Region{Key: r.key, Length: r.size, Base: region.Base(), Incarnation: region.Incarnation(), Access: uint32(r.access)}); err != nil {
			w.t.Fatal(err)
		}
		w.tallies = append(w.tallies, observe(w.t, w.x, region))
		for j := range r.size {
			m.Bytes()[j] = byte(j*7 + i)
		}
		copy(region.Bytes(), m.Bytes())
		w.words, w.twins = append(w.words, m.Bytes()), append(w.twins, region.Bytes())
		w.base, w.born = append(w.base, region.Base()), append(w.born, region.Incarnation())
	}
}

func (w *twin) addHeaders(o setting) {
	link := wire.Link{Kind: o.kind, VLAN: o.vlan, Local: wire.MAC{2, 0, 0, 0, 0, 1}, Remote: wire.MAC{2, 0, 0, 0, 0, 2}}
	switch o.kind {
	case wire.UDP4:
		link.LocalIP, link.RemoteIP = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.1.2.3")
	case wire.UDP6:
		link.LocalIP, link.RemoteIP = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::ffff:2")
	}
	if o.kind == wire.Ethernet {
		link.Class = o.class // so that requests have a tag if answers do
	}
	var err error
	if w.there, err = wire.NewTemplate(link); err != nil {
		w.t.Fatal(err)
	}
	w.there.SetFlow(uint32(w.params.Local))
	packet := make([]byte, 256)
	_, from, reason := wire.Decap(packet[:w.there.Put(packet, wire.MinFrame)])
	if reason != wire.ReasonOK {
		w.t.Fatal(reason)
	}
	w.back = from.Reply(o.class)
	w.back.SetFlow(w.params.Remote)
}

func (w *twin) state() executorSession {
	w.t.Helper()
	s, err := w.x.state(w.place)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// run gives a frame to the program, as a packet, and returns what the program does, and
// the packet that comes out.
func (w *twin) run(frame []byte) (action uint32, packet []byte) {
	w.t.Helper()
	n := w.there.Len() + copy(w.buf[w.there.Len():], frame)
	in := w.buf[:w.there.Put(w.buf, n-w.there.Len())]
	opts := ebpf.RunOptions{Data: in, DataOut: w.out}
	action, err := w.x.Program().Run(&opts)
	if err != nil {
		w.t.Fatalf("BPF_PROG_TEST_RUN of %d bytes: %v", len(in), err)
	}
	return action, packetOf(action, opts.DataOut)
}

// packetOf is what comes out of the program without the metadata, which it puts before
// its answers.
func packetOf(action uint32, out []byte) []byte {
	if action == xdpTX {
		return out[metadata:]
	}
	return out
}

// send gives a frame to both, and compares all that can be seen.
func (w *twin) send(frame []byte) {
	w.t.Helper()
	w.now++
	frame = slices.Clone(frame)
	action, packet := w.run(frame)
	want, answer := w.refer(frame)
	if action != want {
		w.t.Fatalf("the program returns %d, want %d, for frame %x", action, want, frame)
	}
	if want == xdpTX {
		b := make([]byte, 4096)
		n := w.back.Len() + copy(b[w.back.Len():], answer)
		if b = b[:w.back.Put(b, n-w.back.Len())]; !bytes.Equal(packet, b) {
			w.t.Fatalf("frame   %x\nanswer  %x\nwant    %x", frame, packet, b)
		}
	} else if action == xdpRedirect && !bytes.Equal(packet[w.there.Len():], frame) {
		w.t.Fatalf("a frame for user space was changed\nfrom %x\nto   %x", frame, packet[w.there.Len():])
	}
	w.compare(frame)
}

// compare looks for differences of state and memory after a frame.
func (w *twin) compare(frame []byte) {
	w.t.Helper()
	s, ran := w.state(), w.go_.Ran()
	early := bits.RotateLeft64(s.Ahead, -int((s.Expected+1)&63))
	if s.Expected-1 != ran.PSN || early != ran.Early || s.Freed != w.go_.Acked() || s.Lock != 0 || s.Claimed != 0 {
		w.t.Fatalf("frame %x\nstate %+v, want %+v, acked %d", frame, s, ran, w.go_.Acked())
	}
	if (s.Heard != w.kernelHeard) != (w.go_.HeardAt() != w.goHeard) {
		w.t.Fatalf("frame %x: something new: %v, want %v", frame, s.Heard != w.kernelHeard, w.go_.HeardAt() != w.goHeard)
	}
	w.kernelHeard, w.goHeard = s.Heard, w.go_.HeardAt()
	for i := range w.words {
		if !bytes.Equal(w.words[i], w.twins[i]) {
			w.t.Fatalf("frame %x: memory %d differs\nis   %x\nwant %x", frame, i, w.words[i], w.twins[i])
		}
		if is, want := w.tallies[i].is.Now(), *w.tallies[i].want; is != want {
			w.t.Fatalf("frame %x: region %d: %+v are counted, want %+v", frame, i, is, want)
		}
	}
}

// user is what the program does with a frame that is not its own.
func (w *twin) user() uint32 {
	if w.sockets {
		return xdpRedirect
	}
	return xdpDrop
}

// refer gives a frame to the executor in Go, and returns what the program should do.
func (w *twin) refer(frame []byte) (action uint32, answer []byte) {
	w.t.Helper()
	h, payload, reason := wire.Parse(frame)
	if reason != wire.ReasonOK || len(frame) > MaxFrame || h.Flags&^(wire.FlagDelay|wire.FlagRetx|wire.FlagPadded|wire.FlagEcho) != 0 ||
		h.Flags&wire.FlagEcho != 0 && h.Type != wire.Probe || h.Type == wire.Probe && len(payload) > 0 ||
		h.Session != uint32(w.params.Local) || h.Epoch != w.params.Epoch ||
		h.Type != wire.Request && h.Type != wire.Probe && h.Type != wire.Ack {
		return w.user(), nil
	}
	if w.sockets && w.wantsSocket(&h, payload) {
		return xdpRedirect, nil // before anything is done
	}
	if h.Type == wire.Request {
		expected := w.go_.Ran().PSN + 1
		d := wire.Diff(h.PSN, expected)
		early := d > 0 && w.params.Features&wire.FeatureUnordered == 0
		inside := func() bool {
			ahead := wire.Diff(h.PSN, w.go_.Acked())
			return ahead > 0 && ahead <= session.MaxWindow && len(payload) <= w.params.MaxFrame-wire.HeaderLen
		}
		if early && w.sockets && wire.Diff(h.Ack, expected) < 0 && inside() {
			return xdpRedirect, nil // before anything is done
		}
		if early || d >= 0 && !w.go_.Ran().Has(h.PSN) && w.foreign(payload, int(h.Ops)) {
			ack := h
			ack.Type = wire.Ack
			switch {
			case w.go_.Receive(w.now, &ack, nil, nil).Verdict == session.Invalid || !inside():
				return xdpDrop, nil
			case early:
				return xdpTX, w.nak()
			}
			return w.user(), nil
		}
	}
	o := w.go_.Receive(w.now, &h, payload, nil)
	w.go_.Settle()
	if o.Refused != wire.ReasonOK {
		w.t.Fatalf("the executor refuses %x: %v", frame, o.Refused)
	}
	if !w.go_.Due() {
		return xdpDrop, nil
	}
	b := make([]byte, 4096)
	answer = b[:wire.Seal(b, w.go_.Emit(b))]
	for rest := make([]byte, 4096); w.go_.Due(); {
		w.go_.Emit(rest)
	}
	return xdpTX, answer
}

// wantsSocket reports whether a frame asks for an answer that was lost, perhaps. No
// user space looks at those frames here, so every other one is the program's.
func (w *twin) wantsSocket(h *wire.Header, payload []byte) bool {
	ran := w.go_.Ran()
	after := wire.Diff(h.PSN, w.go_.Acked())
	resent := h.Type == wire.Request && h.Flags&wire.FlagRetx != 0 && ran.Has(h.PSN) && after > 0 &&
		after <= session.MaxWindow && len(payload) <= w.params.MaxFrame-wire.HeaderLen
	if !resent && h.Type != wire.Probe {
		return false
	}
	w.handed = !w.handed
	return w.handed
}

// nak is what a target answers an early frame with that it does not keep.
func (w *twin) nak() []byte {
	ran := w.go_.Ran()
	h := wire.Header{Type: wire.Nak, Session: w.params.Remote, Epoch: w.params.Epoch, PSN: ran.PSN + 1, Ack: ran.PSN, Credit: uint16(w.params.Window), Lane: w.params.Local.Lane()}
	b := make([]byte, wire.MinFrame)
	h.Put(b)
	return b[:wire.Seal(b, wire.HeaderLen)]
}

// foreign reports whether the program leaves a payload to user space: it is malformed, or
// has a record that is not of an atomic operation on integers of 8 to 64 bits, or not of
// a region.
func (w *twin) foreign(payload []byte, ops int) bool {
	if wire.Validate(payload, ops) != wire.ReasonOK {
		return true
	}
	var r wire.RecordReader
	var rec wire.Record
	for r.Reset(payload, ops); r.Next(&rec); {
		if !rec.Verb.Atomic() || rec.Datatype > 7 || !supported(&rec) {
			return true
		}
		if !slices.ContainsFunc(w.known(), func(k uint64) bool { return k == rec.Key }) {
			return true
		}
	}
	return false
}

func (w *twin) known() (keys []uint64) {
	for _, r := range twinRegions {
		keys = append(keys, r.key)
	}
	return keys
}
