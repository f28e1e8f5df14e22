// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/engine"
	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// An operation that the network takes longer for than for others does not fail by a
// takeover, and other programs do not wait for it.
func TestTakeoverOutwaits(t *testing.T) {
	s, b := newSuccession(t)
	dial := func(g *xdpfab.Domain, name string) *xdpfab.Peer {
		p, err := g.Dial(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	slow := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	other := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	word, err := xdpfab.Word[uint64](t.Context(), dial(slow, b.Name(0)), "words", 0)
	if err != nil {
		t.Fatal(err)
	}
	ran := func() uint64 {
		stats, err := b.Stats()
		if err != nil {
			t.Error(err)
		}
		return stats["ops_executed"]
	}
	l := &load{t: t}
	l.adds(dial(other, s.dom.Name(0)), "words")
	before := ran()
	if err := b.SetFaults(fi.Faults{Loss: 1}); err != nil { // answers get lost
		t.Fatal(err)
	}
	added := make(chan error, 1)
	go func() {
		_, err := word.Add(t.Context(), 1)
		added <- err
	}()
	testnet.Eventually(t, "the operation runs", func() bool { return ran() > before })
	began, healed := s.dom, make(chan struct{})
	go func() {
		defer close(healed)
		for !leaves(began) {
			time.Sleep(time.Millisecond)
		}
		adds := l.runs[0].n.Load
		for until, end := adds()+500, time.Now().Add(testnet.Patience); adds() < until; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Error("the other program waits")
				break
			}
		}
		if err := b.SetFaults(fi.Faults{}); err != nil {
			t.Error(err)
		}
	}()
	s.next()
	<-healed
	if err := <-added; err != nil {
		t.Error(err)
	}
	l.goOn()
	l.stop.Store(true)
	<-l.runs[0].done
}

// leaves reports whether HandOver has begun.
func leaves(d *xdpfab.Domain) bool {
	d.Hosting().Mu.Lock()
	defer d.Hosting().Mu.Unlock()
	return d.Hosting().Tenancy.Leaving
}

// A program that does not post the next part of an operation holds up no takeover for
// long.
func TestTakeoverOutwaitsNoStarvedOne(t *testing.T) {
	s, b := newSuccession(t)
	s.gone = func(error) {}
	own, other := pairOf(t)
	s.hosted.Go(func() { _ = s.dom.Hosting().Serve(other, s.limits) })
	talk := share.NewTalk(own)
	defer talk.Close()
	sizes := share.Sizes{Entries: 16, Arena: share.MinArena, Arrivals: share.MinArrivals}
	segment, err := share.NewSegment(sizes)
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Close()
	for _, c := range []struct {
		verb string
		args any
		fds  []int
	}{
		{share.CallAttach, share.Attach{Version: share.Version, Sizes: sizes}, []int{segment.FD()}},
		{share.CallEndpoint, share.Endpoint{Number: 9, Origin: 77}, nil},
		{share.CallPeer, share.Peer{Origin: 77, Addr: share.Addr{MAC: b.Node().Dev.MAC()}}, nil},
	} {
		_, fds, err := guestpkg.Ask(t.Context(), talk, c.verb, c.args, c.fds...)
		if share.CloseAll(fds); err != nil {
			t.Fatal(err)
		}
	}
	mem, err := unix.Mmap(segment.FD(), 0, 2*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	binary.LittleEndian.PutUint32(mem[4096+32:], 1<<20)                                           // Count
	binary.LittleEndian.PutUint32(mem[4096+40:], 1)                                               // Peer
	copy(mem[4096+44:], []byte{byte(wire.VerbWrite), wire.OpWrite, wire.Byte, engine.FlagStream}) // and its parts never come
	binary.LittleEndian.PutUint64(mem[64:], 1)                                                    // posted
	g := (&neighbours{succession: s}).host(9)
	testnet.Eventually(t, "an operation begins", func() (begun bool) {
		g.St.Eng.Alert()
		g.St.Call(func() { begun = g.Ring.Starved() })
		return begun
	})
	began := time.Now()
	s.next()
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Calls that wait for their turn to be answered are answered, by the former host or the
// next one.
func TestTakeoverWithCallsForCounters(t *testing.T) {
	n := newNeighbours(t)
	defer n.ends()
	const calls = 100
	ends := make(chan error, calls)
	for range calls {
		go func() {
			all, err := n.bad.Node().Dev.Counters()
			if _, has := all["guest_taken"]; err == nil && !has {
				err = fmt.Errorf("counters %v", all)
			}
			ends <- err
		}()
	}
	n.next()
	for range calls {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	n.next()
	n.l.goOn()
}
