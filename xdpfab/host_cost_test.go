// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/xdpfab/xdpfab/internal/share"
)

// rawGuest is a guest that says to its host what it likes.
type rawGuest struct {
	t    testing.TB
	talk *share.Talk
	n    uint64
}

// rawGuestOf returns a guest that has attached.
func rawGuestOf(t *testing.T, d *Domain, limits GuestLimits) *rawGuest {
	t.Helper()
	talk, hosted := talkTo(t, d, limits)
	g := &rawGuest{t: t, talk: talk}
	sizes := share.Sizes{Entries: 4096, Arena: share.MinArena, Arrivals: share.MinArrivals}
	area, err := share.NewArea(sizes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = talk.Close()
		<-hosted
		_ = area.Close()
	})
	if err := g.call(share.CallAttach, share.Attach{Version: share.Version, Sizes: sizes}, nil, area.FD()); err != nil {
		t.Fatal(err)
	}
	return g
}

// call makes a call and waits for its answer.
func (g *rawGuest) call(verb string, args, result any, fds ...int) error {
	g.t.Helper()
	g.n++
	text, err := json.Marshal(args)
	if err == nil {
		err = g.talk.Send(share.Call{ID: g.n, Verb: verb, Arguments: text}, fds...)
	}
	if err != nil {
		return err
	}
	var r share.Reply
	got, err := g.talk.Receive(&r)
	share.CloseAll(got)
	if err != nil {
		return err
	}
	if r.Error != "" {
		return replied(r)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(r.Result, result)
}

// heapInUse is how many bytes of the heap are in use.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The memory that a guest costs its host grows with what it has in flight, not with the
// endpoints that it might use.
func TestGuestEndpointsAreCheap(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	g := rawGuestOf(t, a, GuestLimits{})
	const endpoints = 64
	before := heapInUse()
	for i := range endpoints {
		if err := g.call(share.CallEndpoint, share.Endpoint{Number: AnyNumber, Origin: uint64(i + 1)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if each := (heapInUse() - before) / endpoints; each > 8<<10 {
		t.Errorf("an endpoint costs the host %d bytes, want at most %d", each, 8<<10)
	}
}
