// SPDX-License-Identifier: Apache-2.0

package port

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Faults are what a [Memory] port does to the packets sent through it, with
// probabilities from 0 to 1.
type Faults struct {
	Loss      float64 // dropped
	Duplicate float64 // delivered twice
	Reorder   float64 // delivered ahead of up to 8 packets sent before
	Corrupt   float64 // one bit flipped

	Delay time.Duration // for all
}

// Memory is the counterpart of the AF_XDP port in memory: the same contract
// without a kernel, with seeded faults. Ports of a pair may be used by
// different threads.
type Memory struct {
	mtu    int
	peer   *Memory
	wake   chan struct{}
	lent   [][]byte // received, until Release
	buffer []byte   // the transmit buffer
	timer  *time.Timer

	mu     sync.Mutex // guards what follows, which the peer's thread writes too
	rng    *rand.Rand
	faults Faults
	// packets that are longer are dropped, as by a switch of a smaller MTU; 0: none
	longest int
	queue   [][]byte // packets to receive
	free    [][]byte // packet memory to use again
	Sent    int      // packets that Send was called for
}

// memoryQueue is how many packets can wait in a Memory port; more are lost, as
// in a receive ring.
const memoryQueue = 2048

// ethernetOverhead is the Ethernet header with one VLAN tag, in bytes.
const ethernetOverhead = 18

// NewMemoryPair returns two ports joined by a cable of the given MTU.
func NewMemoryPair(mtu int, seed uint64) (a, b *Memory) {
	a, b = newMemory(mtu, seed), newMemory(mtu, seed+1)
	a.peer, b.peer = b, a
	return a, b
}

func newMemory(mtu int, seed uint64) *Memory {
	return &Memory{
		mtu: mtu, wake: make(chan struct{}, 1), buffer: make([]byte, mtu+ethernetOverhead),
		rng: rand.New(rand.NewPCG(seed, 0x78647066)), timer: time.NewTimer(time.Hour),
	}
}

// SetFaults changes what happens to packets sent from now on.
func (m *Memory) SetFaults(f Faults) {
	m.mu.Lock()
	m.faults = f
	m.mu.Unlock()
}

// SetLongest has packets dropped that are longer, as a switch of a smaller MTU does; 0
// for none. Any goroutine may call it.
func (m *Memory) SetLongest(bytes int) {
	m.mu.Lock()
	m.longest = bytes
	m.mu.Unlock()
}

// Receive implements the engine's port.
func (m *Memory) Receive(packets [][]byte) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := copy(packets, m.queue)
	m.lent = append(m.lent, m.queue[:n]...)
	m.queue = slices.Delete(m.queue, 0, n)
	return n
}

// Release implements the engine's port.
func (m *Memory) Release() {
	m.mu.Lock()
	m.free = append(m.free, m.lent...)
	m.mu.Unlock()
	m.lent = m.lent[:0]
}

// Buffer implements the engine's port.
func (m *Memory) Buffer() []byte { return m.buffer }

// Send implements the engine's port: it delivers at once, unless the faults are
// otherwise.
func (m *Memory) Send(n int) {
	m.mu.Lock()
	m.Sent++
	f, rng := m.faults, m.rng
	drop, twice := rng.Float64() < f.Loss || m.longest > 0 && n > m.longest, rng.Float64() < f.Duplicate
	late, flip := 0, -1
	if rng.Float64() < f.Reorder {
		late = 1 + rng.IntN(8)
	}
	if rng.Float64() < f.Corrupt {
		flip = rng.IntN(8 * n)
	}
	m.mu.Unlock()
	if drop {
		return
	}
	m.pass(m.buffer[:n], f.Delay, late, flip)
	if twice {
		m.pass(m.buffer[:n], f.Delay, 0, -1)
	}
}

// pass delivers a packet to the peer, now or after a delay.
func (m *Memory) pass(packet []byte, delay time.Duration, late, flip int) {
	if delay == 0 {
		m.peer.deliver(packet, late, flip)
		return
	}
	packet = slices.Clone(packet)
	time.AfterFunc(delay, func() {
		m.peer.deliver(packet, late, flip)
		m.peer.Wake()
	})
}

// deliver queues a copy of the packet, ahead of up to late packets that were
// sent before it, and with bit flip inverted.
func (m *Memory) deliver(packet []byte, late, flip int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) >= memoryQueue {
		return
	}
	var b []byte
	if n := len(m.free); n > 0 {
		b, m.free = m.free[n-1], m.free[:n-1]
	} else {
		b = make([]byte, m.mtu+ethernetOverhead)
	}
	b = b[:copy(b[:cap(b)], packet)]
	if flip >= 0 {
		b[flip/8] ^= 1 << (flip % 8)
	}
	m.queue = slices.Insert(m.queue, max(0, len(m.queue)-late), b)
}

// Flush implements the engine's port.
func (m *Memory) Flush() error {
	m.peer.Wake()
	return nil
}

// Wait implements the engine's port.
func (m *Memory) Wait(timeout time.Duration) {
	m.mu.Lock()
	n := len(m.queue)
	m.mu.Unlock()
	if n > 0 {
		return
	}
	m.timer.Reset(timeout)
	select {
	case <-m.wake:
	case <-m.timer.C:
	}
	m.timer.Stop()
}

// Wake implements the engine's port.
func (m *Memory) Wake() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
