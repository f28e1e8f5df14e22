// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultwire

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// pastFrames is how many captures a direction keeps for replays.
	pastFrames = 512
	// capture is one in how many frames is kept. Each takes the place of a random
	// one, so the ages of captures are spread geometrically, with a mean of
	// pastFrames*capture frames: most are recent, and some belong to sessions
	// that ended long ago.
	capture = 8
	// minFrame is the shortest frame that a veth accepts: an Ethernet header.
	minFrame = 14
	maxFlips = 8
)

// lane is one direction. All fields but faults and counts belong to the wire's
// goroutine.
type lane struct {
	from, to *port
	faults   atomic.Pointer[Faults]   // written by Wire.Set
	counts   [numEvents]atomic.Uint64 // written by the wire's goroutine
	rnd      *rand.Rand
	queue    delayQueue
	clogged  int64    // nothing leaves before this, ns
	past     [][]byte // captures for replays
	seen     uint64   // frames, to capture one in so many
	scratch  []byte   // a frame that is being changed
}

func (l *lane) count(e Event) { l.counts[e].Add(1) }

// chance returns true with probability p.
func (l *lane) chance(p float64) bool { return p > 0 && l.rnd.Float64() < p }

// upTo returns a random duration from 0 to d, ns.
func (l *lane) upTo(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return l.rnd.Int64N(int64(d) + 1)
}

// take decides what becomes of a frame that arrived.
func (l *lane) take(now int64, frame []byte) {
	f := l.faults.Load()
	l.count(Received)
	l.remember(frame)
	if f.Cut {
		l.count(Cut)
		return
	}
	if len(l.past) > 0 && l.chance(f.Replay) {
		for range f.Storm {
			l.count(Replayed)
			l.deliver(now, f, l.past[l.rnd.IntN(len(l.past))])
		}
	}
	if l.chance(f.Loss) {
		l.count(Lost)
		return
	}
	if l.chance(f.Duplicate) {
		l.count(Duplicated)
		l.deliver(now, f, frame)
	}
	l.deliver(now, f, frame)
}

// remember keeps some frames for replays.
func (l *lane) remember(frame []byte) {
	l.seen++
	if l.seen%capture != 1 {
		return
	}
	if len(l.past) < pastFrames {
		l.past = append(l.past, append(make([]byte, 0, len(l.scratch)), frame...))
		return
	}
	i := l.rnd.IntN(pastFrames)
	l.past[i] = append(l.past[i][:0], frame...)
}

// deliver damages and delays one copy of a frame.
func (l *lane) deliver(now int64, f *Faults, frame []byte) {
	frame = l.damage(f, frame)
	due := now + int64(f.Delay) + l.upTo(f.Jitter)
	if l.chance(f.Reorder) {
		l.count(Reordered)
		due += l.upTo(f.ReorderBy)
	}
	if now >= l.clogged && l.chance(f.Clog) {
		l.count(Clogged)
		l.clogged = now + l.upTo(f.ClogTime)
	}
	if due = max(due, l.clogged); due <= now {
		l.emit(frame)
		return
	}
	l.count(Delayed)
	if !l.queue.push(due, frame) {
		l.count(Overflowed)
	}
}

// damage returns the frame, or a changed copy in scratch.
func (l *lane) damage(f *Faults, frame []byte) []byte {
	flip, cut := l.chance(f.Corrupt), l.chance(f.Truncate) && len(frame) > minFrame
	if !flip && !cut {
		return frame
	}
	frame = l.scratch[:copy(l.scratch, frame)]
	if cut {
		l.count(Truncated)
		frame = frame[:minFrame+l.rnd.IntN(len(frame)-minFrame)]
	}
	if flip {
		l.count(Corrupted)
		for range 1 + l.rnd.IntN(maxFlips) {
			bit := l.rnd.IntN(8 * len(frame))
			frame[bit/8] ^= 1 << (bit % 8)
		}
	}
	return frame
}

// release emits the frames that are due, and returns their number.
func (l *lane) release(now int64) (n int) {
	for at, ok := l.queue.due(); ok && at <= now; at, ok = l.queue.due() {
		l.emit(l.queue.pop())
		n++
	}
	return n
}

func (l *lane) emit(frame []byte) {
	if frame = l.readdress(frame); frame == nil {
		l.count(Astray)
	} else if l.to.send(frame) {
		l.count(Forwarded)
	} else {
		l.count(Refused)
	}
}
