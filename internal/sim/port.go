// SPDX-License-Identifier: Apache-2.0

package sim

import "time"

// simPort is one life of a node's queue: a receive ring that overflows, and
// transmit buffers that come back when the line has taken their packets.
type simPort struct {
	n       *node
	rx      [][]byte
	rxLimit int
	lent    int // of rx, until Release
	buffer  []byte
	queued  [][]byte // until Flush
	busy    []int64  // when each transmit buffer in flight comes back, ascending
	txLimit int
	uplink  pipe
	short   bool // Buffer has refused since the last step
	sent    int
}

// encapRoom is how much longer than the MTU a packet may be: an Ethernet header
// with a VLAN tag.
const encapRoom = 18

func newPort(n *node) *simPort {
	p := &n.w.plan
	return &simPort{
		n: n, rxLimit: p.rxRing, txLimit: p.txRing,
		buffer: make([]byte, p.mtu+encapRoom), uplink: pipe{rate: p.uplink},
	}
}

// Receive implements engine.Port.
func (p *simPort) Receive(packets [][]byte) int {
	if len(p.rx) == 0 && p.n.looks >= len(p.n.ports) { // the step's first look at each port takes no time
		p.n.lookAgain()
	}
	p.n.looks++
	p.lent = copy(packets, p.rx)
	return p.lent
}

// Release implements engine.Port. The views get overwritten, so that code that
// has kept one is found out.
func (p *simPort) Release() {
	for _, b := range p.rx[:p.lent] {
		for i := range b {
			b[i] = poison
		}
	}
	rest := copy(p.rx, p.rx[p.lent:])
	clear(p.rx[rest:])
	p.rx, p.lent = p.rx[:rest], 0
}

// Buffer implements engine.Port.
func (p *simPort) Buffer() []byte {
	now, back := p.n.w.now, 0
	for back < len(p.busy) && p.busy[back] <= now {
		back++
	}
	p.busy = p.busy[back:]
	if len(p.busy)+len(p.queued) >= p.txLimit {
		p.short = true
		p.n.w.count(txShort)
		return nil
	}
	return p.buffer
}

// Send implements engine.Port.
func (p *simPort) Send(n int) {
	p.sent++
	p.n.spend()
	packet := append([]byte(nil), p.buffer[:n]...)
	p.n.w.tap.sent(p.n, packet)
	p.queued = append(p.queued, packet)
}

// Flush implements engine.Port.
func (p *simPort) Flush() error {
	w := p.n.w
	for _, b := range p.queued {
		t, _ := p.uplink.put(max(w.now, p.n.until), len(b))
		p.busy = append(p.busy, t)
		w.trace.packet('>', p.n, b)
		w.net.send(p.n, b, t)
	}
	clear(p.queued)
	p.queued = p.queued[:0]
	return nil
}

// Wait implements engine.Port. It does not wait: the scheduler decides when to
// step.
func (p *simPort) Wait(time.Duration) {}

// Wake implements engine.Port.
func (p *simPort) Wake() {}

// deliver puts a packet into the receive ring.
func (p *simPort) deliver(b []byte) bool {
	if len(p.rx) >= p.rxLimit {
		return false
	}
	p.rx = append(p.rx, b)
	return true
}
