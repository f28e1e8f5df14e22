// SPDX-License-Identifier: Apache-2.0

package share

import (
	"encoding/binary"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// crossRings returns the two ends of a cross ring.
func crossRings(t *testing.T) (a, b *CrossRing) {
	t.Helper()
	a, other, err := NewCrossRing()
	if err != nil {
		t.Fatal(err)
	}
	if b, err = CrossRingOf(other[0], other[1]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	})
	return a, b
}

// strokes counts how often an end has been woken, and forgets it.
func strokes(f *CrossRing) (n int) {
	var b [8]byte
	for {
		if _, _, err := unix.Recvfrom(f.fd, b[:], unix.MSG_DONTWAIT); err != nil {
			return n
		}
		n++
	}
}

// The layout is shared with other programs.
func TestCrossRingLayout(t *testing.T) {
	if n := reflect.TypeFor[deckHeader]().Size(); n != deckHeaderLen {
		t.Errorf("the header of a direction has %d bytes, want %d", n, deckHeaderLen)
	}
}

// An end that is closed is left, though the other side always has another packet.
func TestCrossRingClosesUnderLoad(t *testing.T) {
	from, to := crossRings(t)
	done, begun := make(chan struct{}), make(chan struct{}, 1)
	go func() {
		defer close(done)
		to.Run(func(p []byte) {
			from.Send(p) // the ring never runs empty
			select {
			case begun <- struct{}{}:
			default:
			}
		})
	}()
	for range 2 {
		from.Send([]byte("packet"))
	}
	<-begun
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
}

// Packets cross both ways, whole and in order, until either side ends.
func TestCrossRing(t *testing.T) {
	for way := range 2 {
		from, to := crossRings(t)
		ends := to
		if way == 1 {
			from, to = to, from
		}
		var arrived, wrong atomic.Uint64
		done := make(chan struct{})
		go func() {
			defer close(done)
			to.Run(func(p []byte) {
				n := arrived.Load()
				if len(p) != 8+int(n%100) || binary.LittleEndian.Uint64(p) != n {
					wrong.Add(1)
				}
				arrived.Store(n + 1)
			})
		}()
		packet := make([]byte, 128)
		const packets = 3 * deckPlaces
		for n := range uint64(packets) {
			binary.LittleEndian.PutUint64(packet, n)
			from.Send(packet[:8+n%100])
			if n%64 == 63 { // there is room, and the other side sleeps now and then
				testnet.Eventually(t, "packets arrive", func() bool { return arrived.Load() == n+1 })
			}
		}
		if wrong.Load() != 0 {
			t.Errorf("%d packets are not as they were sent", wrong.Load())
		}
		if err := ends.Close(); err != nil {
			t.Error(err)
		}
		<-done
		from.Send(packet) // nothing happens
		if arrived.Load() != packets {
			t.Error("a packet arrived behind the end")
		}
	}
}

// A burst takes no memory, and wakes the other side once, if that sleeps. What finds no
// room is lost.
func TestCrossRingBurst(t *testing.T) {
	a, b := crossRings(t)
	packet := make([]byte, 1500)
	taken := 0
	count := func([]byte) { taken++ }
	burst := func() {
		for range 64 {
			a.Send(packet)
		}
		if !b.take(count) {
			t.Fatal("the cross ring is broken")
		}
	}
	if n := testing.AllocsPerRun(100, burst); n != 0 {
		t.Errorf("%v allocations for 64 packets, want none", n)
	}
	if n := strokes(b); n != 0 {
		t.Errorf("a side that does not sleep was woken %d times", n)
	}
	b.in.sleeps.Store(1)
	burst()
	if n := strokes(b); n != 1 {
		t.Errorf("a burst woke the other side %d times, want once", n)
	}
	taken = 0
	for range deckPlaces + 10 {
		a.Send(packet)
	}
	if b.take(count); taken != deckPlaces {
		t.Errorf("%d packets arrived, want the %d that there is room for", taken, deckPlaces)
	}
	a.Send(make([]byte, longestPacket+1))
	if b.take(count); taken != deckPlaces {
		t.Error("a packet arrived that is too long")
	}
}

// Positions and lengths that make no sense end the cross ring, and do no harm.
func TestCrossRingOfALiar(t *testing.T) {
	never := func([]byte) { t.Error("a packet arrived") }
	a, b := crossRings(t)
	a.out.put.Store(deckPlaces + 1)
	b.Run(never)
	a, b = crossRings(t)
	a.out.lengths[0] = longestPacket + 1
	a.out.put.Store(1)
	b.Run(never)
	a, b = crossRings(t)
	b.in.taken.Store(1 << 40) // more than there ever were
	a.Send([]byte{1})
	if a.out.put.Load() != 0 {
		t.Error("a packet was sent to where the other side has not been")
	}
	if _, err := CrossRingOf(-1, -1); err == nil {
		t.Error("nothing is a cross ring")
	}
}
