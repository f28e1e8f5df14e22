// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"cmp"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wakeup"
	"github.com/xdpfab/xdpfab/xsk"
)

// Queue is one queue of an interface: one AF_XDP socket with packet memory of its own. It
// implements the engine's Port. All methods but Wake belong to one thread.
//
// The first chunks of the memory are for receiving: each is in the fill ring, with the
// kernel, in the RX ring, or lent to the caller. The others are for sending, and pool
// knows about them.
type Queue struct {
	number int
	sock   *xsk.Socket
	umem   *xsk.UMEM
	mode   xsk.Mode
	rx     *xsk.Consumer[xsk.Desc]
	fill   *xsk.Producer[uint64]
	tx     *xsk.Producer[xsk.Desc]
	pool   *xsk.FramePool // the sending chunks
	slab   int            // chunks of a packet to be sent: how many slots of TX it may take
	parts  *joiner        // nil if each packet lies in one chunk

	lent    []uint64 // received chunks that the caller has; the capacity is for all of them
	ours    []bool   // by receiving chunk: it is in lent, so the kernel must not deliver it
	buffer  uint64   // the chunk that Buffer returned
	held    bool     // buffer is valid, and not sent yet
	pending int      // descriptors written into TX, not submitted
	stalled bool     // TX has packets that the kernel would not take yet

	tally tally
	event *wakeup.Event  // set by Wake
	extra [1]unix.PollFd // the event, for Poll
}

// bindTimeout is how long a queue may seem taken: the kernel frees the queue of a process
// that has just ended in a work item, which may come late on a loaded machine: it waits
// for the lock of all network configuration (rtnl), which the ends of network namespaces
// hold for seconds. The XDP program is attached by then, so no other xdpfab can have the
// queue; only for another user of AF_XDP does the wait not help.
//
// A queue that only hands frames over is not worth so long a wait: its frames come again.
const (
	bindTimeout      = 30 * time.Second
	forwarderTimeout = 3 * time.Second
)

// newQueue opens queue number of an interface, ready to receive.
func newQueue(ifindex, number int, o Options) (*Queue, error) {
	q := &Queue{number: number}
	if err := q.open(ifindex, o); err != nil {
		return nil, errors.Join(err, q.close())
	}
	return q, nil
}

func (q *Queue) open(ifindex int, o Options) (err error) {
	receiving := o.Chunks / 2
	if o.listens {
		receiving = o.Chunks - max(o.segments, 1)
	}
	sending := o.Chunks - receiving
	if err := q.alarm(); err != nil {
		return err
	}
	if q.umem, err = xsk.NewUMEM(xsk.UMEMConfig{Chunks: o.Chunks, ChunkSize: o.chunk, Share: o.share}); err != nil {
		return err
	}
	q.sock, err = xsk.Open(xsk.Config{
		UMEM: q.umem, IfIndex: ifindex, Queue: q.number, Mode: o.Copy, BusyPoll: o.BusyPoll,
		BindTimeout: cmp.Or(o.patience, bindTimeout),
		RXSize:      o.RingSize, TXSize: o.RingSize, CompletionSize: o.RingSize,
		FillSize: o.fillSize(), MultiBuffer: o.segments > 0,
		// As many as can be in flight, so that this limit is never reached.
		SendBuffer: min(sending*(o.chunk+skbOverhead), maxSendBytes),
	})
	if err != nil {
		return err
	}
	if err := q.use(receiving, o.segments); err != nil {
		return err
	}
	q.lent = q.lent[:receiving]
	for i := range q.lent {
		q.lent[i], q.ours[i] = q.umem.Addr(i), true
	}
	q.Release()
	return nil
}

// use puts the socket and its memory to use. The first chunks are for receiving, and the
// kernel has all of them. segments is that of a nic.Plan.
func (q *Queue) use(receiving, segments int) (err error) {
	q.mode = q.sock.Mode()
	q.rx, q.tx, q.fill = q.sock.RX(), q.sock.TX(), q.sock.Fill()
	q.slab = max(segments, 1)
	q.pool, err = q.umem.SlabPool(receiving, q.umem.Chunks()-receiving, q.slab)
	if err == nil && segments > 0 {
		q.parts = newJoiner(segments * q.umem.ChunkSize())
	}
	q.lent, q.ours = make([]uint64, 0, receiving), make([]bool, receiving)
	return err
}

// closeQueues closes all of them.
func closeQueues(queues []*Queue) error {
	var errs []error
	for _, q := range queues {
		errs = append(errs, q.close())
	}
	return errors.Join(errs...)
}

// close frees everything that exists.
func (q *Queue) close() error {
	errs := []error{q.event.Close()}
	if q.sock != nil {
		errs = append(errs, q.sock.Close())
	}
	if q.umem != nil {
		errs = append(errs, q.umem.Close())
	}
	return errors.Join(errs...)
}

// Receive fills packets with views of received packets and returns how many. The views
// may be written to and are valid until Release. It does not block.
func (q *Queue) Receive(packets [][]byte) int {
	if q.stalled {
		_ = q.push() // the next Flush returns the error
	}
	if q.parts != nil {
		return q.receiveParts(packets)
	}
	n := q.rx.Peek(min(len(packets), cap(q.lent)-len(q.lent)))
	if n == 0 {
		q.sock.WakeRX() // no system call, unless the driver or busy polling wants one
		return 0
	}
	good := 0
	for i := range n {
		if d := q.rx.Get(i); q.lend(d.Addr) {
			packets[good] = q.umem.Frame(d)
			good++
		}
	}
	q.rx.Release(n)
	return good
}

// lend records that the caller gets a chunk. It refuses one that the caller has already,
// or that is not for receiving: a driver that looks at stale descriptors delivers a chunk
// twice (igb, when its ring runs short of chunks), and then the kernel would have it
// twice after the next Release.
func (q *Queue) lend(addr uint64) bool {
	i := addr / uint64(q.umem.ChunkSize())
	if i >= uint64(len(q.ours)) || q.ours[i] {
		q.tally.repeated.Add(1)
		return false
	}
	q.ours[i] = true
	q.lent = append(q.lent, addr)
	return true
}

// Release gives the chunks of all packets received so far back to the kernel.
func (q *Queue) Release() {
	n := q.fill.Reserve(len(q.lent))
	for i, addr := range q.lent[:n] {
		q.fill.Set(i, addr)
		q.ours[addr/uint64(q.umem.ChunkSize())] = false
	}
	q.fill.Submit(n)
	q.lent = q.lent[:copy(q.lent, q.lent[n:])]
	if q.parts != nil {
		q.parts.used = 0
	}
	q.sock.WakeRX()
}

// Buffer returns the memory of the packet that Send will queue next: a whole chunk, or
// several that lie side by side, which a packet of the interface's MTU fits into. It
// returns nil when all chunks are in flight; Flush takes them back as the kernel finishes
// them.
func (q *Queue) Buffer() []byte {
	if !q.held && !q.take() {
		return nil
	}
	return q.umem.Slab(q.buffer, q.slab)
}

// take gets a chunk, or a slab, and reserves the slots in TX for it: while it is held,
// slots for it are reserved besides the pending ones, also across a Flush.
func (q *Queue) take() bool {
	if want := q.pending + q.slab; q.tx.Reserve(want) < want {
		return false
	}
	if q.pool.Free() == 0 {
		q.reap()
	}
	q.buffer, q.held = q.pool.Get()
	return q.held
}

// Send queues the first n bytes of the last Buffer. Without one it does nothing.
func (q *Queue) Send(n int) {
	if q.slab > 1 {
		q.sendParts(n)
		return
	}
	if !q.held || !q.pool.Sent(q.buffer) {
		return
	}
	q.tx.Set(q.pending, xsk.Desc{Addr: q.buffer, Len: uint32(n)})
	q.pending++
	q.held = false
}

// Flush hands the queued packets to the kernel with one store and, as a rule, one system
// call, and takes finished buffers back. Packets that the kernel will not take yet stay
// queued: they go with the next Flush, Receive or Wait.
//
// There is an error if the interface is down (ENETDOWN) or gone (ENXIO).
func (q *Queue) Flush() error {
	q.tx.Submit(q.pending)
	q.pending = 0
	if q.pool.InFlight() == 0 {
		return nil
	}
	return q.push()
}

// oldBudget is how many packets a kernel that cannot be told to take more takes for each
// call: 32, and the oldest kernels 16 (TX_BATCH_SIZE in net/xdp/xsk.c).
const oldBudget = 16

// push makes the kernel send what is in TX. Kernels before 6.17 take few packets for each
// call, and most of them show in TX how far they got only when they have taken all of it.
// So push calls again as long as TX shows progress, or until it has made as many calls as
// a full TX takes.
func (q *Queue) push() error {
	budget := q.sock.TXBudget()
	if budget <= 2*oldBudget {
		budget = oldBudget
	}
	for calls := (q.tx.Size() - q.tx.Free() + budget - 1) / budget; ; calls-- {
		before := q.tx.Free()
		result := q.sock.Kick()
		q.reap()
		q.stalled = result.Retry() || result == xsk.KickNoBuffers
		switch {
		case result == xsk.KickLost:
			// The device is full. The next call would only lose the next packet.
			q.tally.lost.Add(1)
		case result == xsk.KickAgain && (q.tx.Free() > before || calls > 1):
			continue
		case !q.stalled:
			return result.Err()
		}
		q.tally.retries.Add(1)
		return nil
	}
}

// reap takes the buffers of sent packets back.
func (q *Queue) reap() {
	q.pool.Reap(q.sock.Completion(), q.tx.Size())
	if n := q.pool.Bogus(); n != q.tally.bogus.Load() {
		q.tally.bogus.Store(n)
	}
	if n := q.pool.Rescued(); n != q.tally.rescued.Load() {
		q.tally.rescued.Store(n)
	}
}
