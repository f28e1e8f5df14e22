// SPDX-License-Identifier: Apache-2.0

package share

import (
	"encoding/binary"
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// An end goes on as another one, again and again, while both sides send: what is in the
// rings meanwhile arrives once and in order, and the other side notices nothing.
func TestCrossRingContinues(t *testing.T) {
	near, other, err := NewCrossRing()
	if err != nil {
		t.Fatal(err)
	}
	far, err := CrossRingOf(other[0], other[1])
	if err != nil {
		t.Fatal(err)
	}
	var atNear, atFar sequence
	farDone := make(chan struct{})
	go func() { defer close(farDone); far.Run(atFar.take) }()
	var toNear, toFar uint64
	send := func(f *CrossRing, n *uint64) {
		f.Send(binary.LittleEndian.AppendUint64(nil, *n))
		*n++
	}
	for range 5 {
		done := make(chan struct{})
		go func() { defer close(done); near.Run(atNear.take) }()
		for range deckPlaces / 2 {
			send(near, &toFar)
			send(far, &toNear)
		}
		testnet.Eventually(t, "packets arrive", func() bool { return atNear.n.Load() == toNear && atFar.n.Load() == toFar })
		near.Halt()
		<-done
		for range deckPlaces / 2 { // they wait for the next one
			send(near, &toFar)
			send(far, &toNear)
		}
		s, fds, err := near.Leave()
		if err != nil {
			t.Fatal(err)
		}
		near.Send([]byte("nothing happens"))
		if s.Put != toFar || s.Taken+deckPlaces/2 != toNear {
			t.Errorf("%+v after %d and %d packets", s, toFar, toNear)
		}
		if _, _, err := near.Leave(); err == nil {
			t.Error("it was left twice")
		}
		if near, err = s.GoOn(fds[0], fds[1]); err != nil {
			t.Fatal(err)
		}
		testnet.Eventually(t, "packets of the end that was left arrive", func() bool { return atFar.n.Load() == toFar })
	}
	done := make(chan struct{})
	go func() { defer close(done); near.Run(atNear.take) }()
	testnet.Eventually(t, "the last packets arrive", func() bool { return atNear.n.Load() == toNear })
	if err := near.Close(); err != nil {
		t.Error(err)
	}
	<-done
	<-farDone // only now
	if err := far.Close(); err != nil {
		t.Error(err)
	}
	if atNear.wrong.Load()+atFar.wrong.Load() != 0 {
		t.Error("packets came twice, or in another order")
	}
	if _, err := (CrossRingState{}).GoOn(-1, -1); err == nil {
		t.Error("nothing goes on")
	}
}

// sequence counts packets, each of which says how many came before it.
type sequence struct{ n, wrong atomic.Uint64 }

func (s *sequence) take(p []byte) {
	if binary.LittleEndian.Uint64(p) != s.n.Load() {
		s.wrong.Add(1)
	}
	s.n.Add(1)
}
