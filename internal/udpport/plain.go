// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

const (
	// waiting is how many packets can wait to be received; further ones are lost.
	waiting = 1024
	// errorPause keeps a reader from spinning while its socket has nothing but errors.
	errorPause = time.Millisecond
	// spins is how many calls of Receive in a row may find nothing before one gives the
	// processor away: more than a poller makes before it waits.
	spins = 1024
)

// plain is the engine's port by package net, for systems without a better one: a
// goroutine for each socket reads what arrives. All methods but Wake belong to one
// thread.
type plain struct {
	conns  []plainConn
	out    []byte       // the transmit buffer
	in     chan []byte  // received, to be handed out
	free   chan []byte  // memory to receive into
	made   atomic.Int32 // how many buffers there are, at most waiting
	lent   [][]byte
	vain   int // calls of Receive that have found nothing since there was something, or a Wait
	wake   chan struct{}
	timer  *time.Timer
	tally  tally
	faults atomic.Pointer[disturber]

	closing chan struct{}
	readers sync.WaitGroup
}

type plainConn struct {
	*net.UDPConn
	as16 [16]byte // its address, as in a wire.Way
}

func openPlain(addrs []netip.Addr, mtu int) (port, error) {
	p := &plain{out: make([]byte, wire.WayLen+mtu), in: make(chan []byte, waiting), free: make(chan []byte, waiting),
		wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour), closing: make(chan struct{})}
	for _, a := range addrs {
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, wire.UDPPort)))
		if err != nil {
			return nil, errors.Join(bindError(a, err), p.close())
		}
		_ = c.SetReadBuffer(plainBuffer)
		_ = c.SetWriteBuffer(plainBuffer)
		x := plainConn{c, a.As16()}
		p.conns = append(p.conns, x)
		p.readers.Go(func() { p.read(x, wire.WayLen+mtu) })
	}
	return p, nil
}

// plainBuffer is how many bytes the system is asked to keep for each direction.
const plainBuffer = 1 << 20

// read receives from one socket until the port is closed.
func (p *plain) read(c plainConn, size int) {
	for {
		b := p.memory(size)
		if b == nil {
			return
		}
		n, from, err := c.ReadFromUDPAddrPort(b[wire.WayLen:])
		way := wire.Way{From: from.Addr().As16(), To: c.as16}
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as one longer than any frame, or the echo of something sent
			p.tally.refused.Add(1)
			p.free <- b
			time.Sleep(errorPause)
			continue
		case n == 0 || !single(&way.From):
			p.tally.dropped.Add(1)
			p.free <- b
			continue
		}
		wire.PutWay(b, &way)
		p.in <- b[:wire.WayLen+n] // there is room for all buffers
		p.Wake()
	}
}

// memory returns a buffer to receive into, nil once the port is closed. A free one comes
// before a new one, so that the port makes no more than have ever waited at once.
func (p *plain) memory(size int) []byte {
	select {
	case b := <-p.free:
		return b[:size]
	default:
	}
	if p.made.Add(1) <= waiting {
		return make([]byte, size)
	}
	p.made.Add(-1)
	select {
	case b := <-p.free:
		return b[:size]
	case <-p.closing:
		return nil
	}
}

func (p *plain) Receive(packets [][]byte) (n int) {
	for n < len(packets) {
		select {
		case b := <-p.in:
			packets[n] = b
			p.lent = append(p.lent, b)
			n++
			p.vain = 0
		default:
			if n == 0 {
				p.giveWay()
			}
			return n
		}
	}
	return n
}

// giveWay lets the readers run once in a while: they learn of packets from the runtime,
// which looks for them at once only if a processor is free. A thread that never waits may
// have the only one, and would then get its packets 10 ms late. The sleep has to be so
// long that the runtime looks; it ends with the next packet, or after about 1 ms.
func (p *plain) giveWay() {
	if p.vain++; p.vain >= spins {
		p.vain = 0
		time.Sleep(time.Microsecond)
	}
}

func (p *plain) Release() {
	for _, b := range p.lent {
		p.free <- b
	}
	p.lent = p.lent[:0]
}

func (p *plain) Buffer() []byte { return p.out }

// Send sends at once: there is no call for several datagrams.
func (p *plain) Send(n int) {
	if n <= wire.WayLen {
		return
	}
	if d := p.faults.Load(); d != nil {
		d.send(p.out[:n], wire.WayLen, p.put)
		return
	}
	p.put(p.out[:n])
}

func (p *plain) disturb(d *disturber) { p.faults.Store(d) }

func (p *plain) put(packet []byte) {
	way := wire.WayOf(packet)
	to := netip.AddrPortFrom(netip.AddrFrom16(way.To).Unmap(), wire.UDPPort)
	for _, c := range p.conns {
		if c.as16 == way.From {
			if _, err := c.WriteToUDPAddrPort(packet[wire.WayLen:], to); err == nil {
				return
			}
		}
	}
	p.tally.lost.Add(1)
}

func (p *plain) Flush() error { return nil }

func (p *plain) Wait(timeout time.Duration) {
	p.vain = 0
	if timeout <= 0 || len(p.in) > 0 {
		return
	}
	p.timer.Reset(timeout)
	select {
	case <-p.wake:
	case <-p.timer.C:
	}
	p.timer.Stop()
}

func (p *plain) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *plain) counters() map[string]uint64 { return p.tally.counters() }

func (p *plain) close() error {
	close(p.closing)
	var errs []error
	for _, c := range p.conns {
		errs = append(errs, c.Close())
	}
	p.readers.Wait()
	return errors.Join(errs...)
}
