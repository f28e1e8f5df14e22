// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

const (
	testEtherType = 0x88b5
	frameHead     = 15 // Ethernet header and the lane
	lanes         = 4  // sockets for each queue that the program can tell apart
)

// redirect is an XDP program that sends frames of our EtherType to entry
// queue*lanes + byte 14 of an XSKMAP, and passes everything else to the stack.
func redirect(t testing.TB, s *testnet.Side) *ebpf.Map {
	t.Helper()
	m, err := tryRedirect(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tryRedirect returns the error of a driver that does not take the program.
func tryRedirect(t testing.TB, s *testnet.Side) (*ebpf.Map, error) {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	const pass = 2 // XDP_PASS
	flags := uint32(unix.BPF_F_XDP_HAS_FRAGS)
	if testnet.KernelBefore(t, 5, 18) {
		flags = 0
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, License: "Apache-2.0", Flags: flags,
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),  // data
			asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),  // data_end
			asm.LoadMem(asm.R4, asm.R1, 16, asm.Word), // rx_queue_index
			asm.Mov.Reg(asm.R5, asm.R2),
			asm.Add.Imm(asm.R5, frameHead),
			asm.JGT.Reg(asm.R5, asm.R3, "pass"),
			asm.LoadMem(asm.R5, asm.R2, 12, asm.Half),
			asm.JNE.Imm(asm.R5, int32(testEtherType>>8|testEtherType&0xff<<8), "pass"),
			asm.LoadMem(asm.R5, asm.R2, 14, asm.Byte),
			asm.Mov.Reg(asm.R2, asm.R4),
			asm.Mul.Imm(asm.R2, lanes),
			asm.Add.Reg(asm.R2, asm.R5),
			asm.LoadMapPtr(asm.R1, m.FD()),
			asm.Mov.Imm(asm.R3, pass),
			asm.FnRedirectMap.Call(),
			asm.Return(),
			asm.Mov.Imm(asm.R0, pass).WithSymbol("pass"),
			asm.Return(),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	mode := link.XDPDriverMode
	if testnet.Granted(t).XDP == "generic" {
		mode = link.XDPGenericMode
	}
	err = s.Do(func() error {
		l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: s.IfIndex, Flags: mode})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
	if err == nil && testnet.Borrowed(t) != nil { // the frames are addressed to nobody, which a NIC looks at
		testnet.IP(t, s, "link set "+s.IfName+" promisc on")
	}
	return m, err
}

// newUMEM is a UMEM that is closed after the sockets that the test opens on it. Its
// chunks are so large that no driver cuts the frames off.
func newUMEM(t testing.TB, chunks int) *UMEM {
	t.Helper()
	size := 2048
	if zeroCopy(t) {
		size = 4096
	}
	u, err := NewUMEM(UMEMConfig{Chunks: chunks, ChunkSize: size})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

// open opens a socket inside a namespace and closes it after the test.
func open(t testing.TB, side *testnet.Side, cfg Config) *Socket {
	t.Helper()
	if cfg.BindTimeout == 0 { // a busy machine is slow to free the queue of the test before
		cfg.BindTimeout = testnet.Patience
	}
	s, err := tryOpen(side, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func tryOpen(side *testnet.Side, cfg Config) (s *Socket, err error) {
	if cfg.IfIndex == 0 {
		cfg.IfIndex = side.IfIndex
	}
	err = side.Do(func() error {
		s, err = Open(cfg)
		return err
	})
	return s, err
}

// node is a socket with the chunks to use it: some to receive, some to send.
type node struct {
	*Socket
	pool *FramePool // of its completion ring
	lost int        // frames that the device dropped
	size int        // bytes in each frame sent; 0 lets frame choose
}

// driverRing is how many chunks a driver with zero-copy keeps in its own ring: igb's has
// 256 entries, as it comes. Fill must not run short beside it: where igb finds fewer
// chunks than its ring has room for, up to the ring's end, it goes on to a descriptor of
// the lap before, and delivers that chunk again (igb_alloc_rx_buffers_zc, Linux 7.2).
const driverRing = 256

// station opens a socket with ring-size chunks in Fill and as many to send. With
// zero-copy there are some left in Fill when both the driver's ring and RX are full.
func station(t testing.TB, side *testnet.Side, m *ebpf.Map, cfg Config) *node {
	t.Helper()
	if cfg.RXSize == 0 {
		cfg.RXSize, cfg.TXSize, cfg.FillSize, cfg.CompletionSize = 256, 256, 256, 256
	}
	sending := cfg.FillSize
	if zeroCopy(t) {
		cfg.FillSize = max(cfg.FillSize, 2*max(cfg.RXSize, driverRing))
	}
	if cfg.UMEM == nil {
		cfg.UMEM = newUMEM(t, 2*cfg.FillSize)
	}
	n := &node{Socket: open(t, side, cfg)}
	var err error
	if n.pool, err = cfg.UMEM.Pool(cfg.FillSize, sending); err != nil {
		t.Fatal(err)
	}
	fill(n.Socket, 0, cfg.FillSize)
	if cfg.RXSize != NoRing { // newer kernels refuse a socket that cannot receive
		enter(t, m, n.Socket, 0)
	}
	testnet.Running(t, side)
	return n
}

// zeroCopy reports whether sockets get zero-copy mode, where the driver takes buffers and
// gives them back when it likes, and drops what finds none without telling the socket.
func zeroCopy(t testing.TB) bool {
	t.Helper()
	return testnet.Granted(t).Copy == "zero-copy"
}

// enter puts a socket into the XSKMAP where the program looks for it.
func enter(t testing.TB, m *ebpf.Map, s *Socket, lane int) {
	t.Helper()
	if err := m.Put(uint32(s.Queue()*lanes+lane), uint32(s.FD())); err != nil {
		t.Fatal(err)
	}
}

// fill gives chunks first to first+n-1 to the kernel to receive into.
func fill(s *Socket, first, n int) {
	n = s.Fill().Reserve(n)
	for i := range n {
		s.Fill().Set(i, s.UMEM().Addr(first+i))
	}
	s.Fill().Submit(n)
	s.WakeRX()
}

// frame writes frame number seq into buf and returns its length. Length and
// contents follow from the number, so that the receiver can check all of it.
func frame(buf []byte, lane byte, seq uint32) int {
	n := 60 + int(seq*37%1200)
	binary.BigEndian.PutUint16(buf[12:], testEtherType)
	buf[14] = lane
	binary.LittleEndian.PutUint32(buf[15:], seq)
	for i := 19; i < n; i++ {
		buf[i] = byte(uint32(i)*7 + seq*13)
	}
	return n
}

// check reads the number of a received frame and compares it to what frame makes.
func check(t testing.TB, got []byte, lane byte) uint32 {
	t.Helper()
	var want [2048]byte
	if len(got) < 19 {
		t.Fatalf("frame of %d bytes", len(got))
	}
	seq := binary.LittleEndian.Uint32(got[15:])
	n := frame(want[:], lane, seq)
	if len(got) != n || string(got[12:]) != string(want[12:n]) {
		t.Fatalf("frame %d damaged: %d bytes, want %d", seq, len(got), n)
	}
	return seq
}

// send queues frames seq to seq+n-1 and returns how many found room.
func (n *node) send(lane byte, seq uint32, count int) int {
	n.pool.Reap(n.Completion(), 256)
	count = n.TX().Reserve(min(count, n.pool.Free()))
	for i := range count {
		addr, _ := n.pool.Get()
		n.pool.Sent(addr)
		size := n.size
		if size == 0 {
			size = frame(n.UMEM().Chunk(addr), lane, seq+uint32(i))
		}
		n.TX().Set(i, Desc{Addr: addr, Len: uint32(size)})
	}
	n.TX().Submit(count)
	return count
}

// flush kicks until the kernel has taken all of TX.
func (n *node) flush(t testing.TB) {
	t.Helper()
	for n.TX().Free() < n.TX().Size() {
		r := n.Kick()
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		if r == KickLost {
			n.lost++
		}
		n.pool.Reap(n.Completion(), 256)
	}
}

// receive hands up to 64 frames to f and gives their chunks back to Fill.
func (n *node) receive(f func(frame []byte)) int {
	got := n.RX().Peek(64)
	got = n.Fill().Reserve(got)
	for i := range got {
		d := n.RX().Get(i)
		f(n.UMEM().Frame(d))
		n.Fill().Set(i, d.Addr)
	}
	n.RX().Release(got)
	n.Fill().Submit(got)
	n.WakeRX()
	return got
}

// await receives until total frames have come, or nothing has come for so long
// that the test has failed.
func (n *node) await(t testing.TB, total int, f func(frame []byte)) {
	t.Helper()
	for got := 0; got < total; {
		k := n.receive(f)
		if got += k; k > 0 {
			continue
		}
		ready, err := n.Poll(testnet.Patience, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ready {
			st, _ := n.Statistics()
			t.Fatalf("%d frames of %d arrived; %+v", got, total, st)
		}
	}
}
