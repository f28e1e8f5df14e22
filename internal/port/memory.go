// SPDX-License-Identifier: Apache-2.0

package port

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Memory is the counterpart of the AF_XDP port in memory: the same contract
// without a kernel, with seeded faults. Ports of a pair, or of a switch, may be used by
// different threads.
type Memory struct {
	mtu    int
	peer   *Memory              // at the other end of a cable; nil at a switch
	ports  map[wire.MAC]*Memory // of the switch; never changes
	sent   []*Memory            // ports that packets went to since the last Flush
	wake   chan struct{}
	lent   [][]byte // received, until Release
	buffer []byte   // the transmit buffer
	timer  *time.Timer

	mu        sync.Mutex // guards what follows, which other threads write too
	rng       *rand.Rand
	faults    Faults             // of all packets that are sent
	links     map[*Memory]Faults // of those to a port of the switch
	cut       map[*Memory]bool   // ports of the switch that nothing is sent to
	unplugged bool
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
	to := m.receiver()
	m.mu.Lock()
	m.Sent++
	f, rng := m.faults, m.rng
	if link, bad := m.links[to]; bad {
		f = f.with(link)
	}
	drop, twice := rng.Float64() < f.Loss || m.longest > 0 && n > m.longest, rng.Float64() < f.Duplicate
	drop = drop || to == nil || m.unplugged || m.cut[to]
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
	to.pass(m.buffer[:n], f.Delay, late, flip)
	if twice {
		to.pass(m.buffer[:n], f.Delay, 0, -1)
	}
	if !slices.Contains(m.sent, to) {
		m.sent = append(m.sent, to)
	}
}

// receiver returns the port that the packet in the buffer is for, nil for none.
func (m *Memory) receiver() *Memory {
	if m.peer != nil {
		return m.peer
	}
	return m.ports[wire.MAC(m.buffer)]
}

// pass delivers a packet to the port, now or after a delay.
func (m *Memory) pass(packet []byte, delay time.Duration, late, flip int) {
	if delay == 0 {
		m.deliver(packet, late, flip)
		return
	}
	packet = slices.Clone(packet)
	time.AfterFunc(delay, func() {
		m.deliver(packet, late, flip)
		m.Wake()
	})
}

// deliver queues a copy of the packet, ahead of up to late packets that were
// sent before it, and with bit flip inverted.
func (m *Memory) deliver(packet []byte, late, flip int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) >= memoryQueue || m.unplugged {
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
	for _, to := range m.sent {
		to.Wake()
	}
	m.sent = m.sent[:0]
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
