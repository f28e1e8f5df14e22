// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultwire

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xsk"
)

const (
	ring = 1024 // entries of each ring; as many chunks to receive and to send
	// kickAfter is the burst that one system call sends; veth queues 256 frames.
	kickAfter = 32
	// maxKicks bounds the attempts to send one burst; frames left over go with the
	// next.
	maxKicks = 8
)

// port is the wire's end of one veth: an AF_XDP socket that gets every frame.
// After open all fields but alias belong to the wire's goroutine.
type port struct {
	alias   atomic.Pointer[alias] // of the node at the other end of the veth; written by Wire.Readdress
	sock    *xsk.Socket
	umem    *xsk.UMEM
	pool    *xsk.FramePool // chunks to send; the first ring chunks receive
	closers []func() error // undo, last first
	unsent  int            // frames in TX that no kick has covered
	drops   int            // frames that the far side's ring had no room for
}

// open puts a socket and the program that feeds it on the side's interface.
func (p *port) open(side *testnet.Side, chunk int) (err error) {
	if p.umem, err = xsk.NewUMEM(xsk.UMEMConfig{Chunks: 2 * ring, ChunkSize: chunk, NoHuge: true}); err != nil {
		return err
	}
	p.onClose(p.umem.Close)
	if p.pool, err = p.umem.Pool(ring, ring); err != nil {
		return err
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return fmt.Errorf("map of sockets: %w", err)
	}
	p.onClose(m.Close)
	return side.Do(func() error { return p.attach(side, m) })
}

// attach is open's part inside the namespace.
func (p *port) attach(side *testnet.Side, m *ebpf.Map) (err error) {
	p.sock, err = xsk.Open(xsk.Config{
		UMEM: p.umem, IfIndex: side.IfIndex, Mode: xsk.Copy,
		RXSize: ring, TXSize: ring, FillSize: ring, CompletionSize: ring,
	})
	if err != nil {
		return err
	}
	p.onClose(p.sock.Close)
	fill := p.sock.Fill()
	n := fill.Reserve(ring)
	for i := range n {
		fill.Set(i, p.umem.Addr(i))
	}
	fill.Submit(n)
	if err := m.Put(uint32(0), uint32(p.sock.FD())); err != nil {
		return fmt.Errorf("map of sockets: %w", err)
	}
	prog, err := redirectAll(m)
	if err != nil {
		return fmt.Errorf("loading the XDP program: %w", err)
	}
	p.onClose(prog.Close)
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: side.IfIndex, Flags: link.XDPDriverMode})
	if err != nil {
		return fmt.Errorf("attaching the XDP program: %w", err)
	}
	p.onClose(l.Close)
	return nil
}

// redirectAll is an XDP program that gives every frame to entry 0 of the map. Not
// even ARP reaches the wire's own network stack, which therefore sends nothing.
func redirectAll(m *ebpf.Map) (*ebpf.Program, error) {
	const drop = 1 // XDP_DROP
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{
			asm.LoadMapPtr(asm.R1, m.FD()),
			asm.Mov.Imm(asm.R2, 0),
			asm.Mov.Imm(asm.R3, drop),
			asm.FnRedirectMap.Call(),
			asm.Return(),
		},
	})
}

func (p *port) onClose(f func() error) { p.closers = append(p.closers, f) }

func (p *port) close() error {
	var errs []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		errs = append(errs, p.closers[i]())
	}
	p.closers = nil
	return errors.Join(errs...)
}

// receive shows take up to limit frames, which are lent for the call, and
// returns their number.
func (p *port) receive(limit int, take func(frame []byte)) int {
	rx, fill := p.sock.RX(), p.sock.Fill()
	n := rx.Peek(limit)
	if n == 0 {
		return 0
	}
	// Fill has room for every chunk that receives, so the reservation cannot fall short.
	k := fill.Reserve(n)
	for i := range n {
		d := rx.Get(i)
		take(p.umem.Frame(d))
		if i < k {
			fill.Set(i, d.Addr)
		}
	}
	rx.Release(n)
	fill.Submit(k)
	p.sock.WakeRX()
	return n
}

// send queues a copy of the frame; false if there is no room even after a flush.
func (p *port) send(frame []byte) bool {
	if p.unsent >= kickAfter {
		p.flush()
	}
	addr, ok := p.pool.Get()
	if !ok {
		p.flush()
		if addr, ok = p.pool.Get(); !ok {
			return false
		}
	}
	tx := p.sock.TX()
	if tx.Reserve(1) == 0 {
		p.pool.Put(addr)
		return false
	}
	n := copy(p.umem.Chunk(addr), frame)
	p.pool.Sent(addr)
	tx.Set(0, xsk.Desc{Addr: addr, Len: uint32(n)})
	tx.Submit(1)
	p.unsent++
	return true
}

// flush hands the queued frames to the kernel, as far as it takes them.
func (p *port) flush() {
	if p.unsent == 0 {
		return
	}
	for range maxKicks {
		r := p.sock.Kick()
		p.pool.Reap(p.sock.Completion(), ring)
		if r == xsk.KickLost {
			p.drops++
		}
		if !r.Retry() {
			break
		}
	}
	p.unsent = p.sock.TX().Size() - p.sock.TX().Free()
}
