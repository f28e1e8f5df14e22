// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// rawGuest is a guest that says to its host what it likes.
type rawGuest struct {
	t    testing.TB
	talk *share.Talk
	n    uint64
}

// rawGuestOf returns a guest that attached.
func rawGuestOf(t *testing.T, d *xdpfab.Domain, limits host.GuestLimits) *rawGuest {
	t.Helper()
	talk, hosted := talkTo(t, d, limits)
	g := &rawGuest{t: t, talk: talk}
	sizes := share.Sizes{Entries: 4096, Arena: share.MinArena, Arrivals: share.MinArrivals}
	segment, err := share.NewSegment(sizes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = talk.Close()
		<-hosted
		_ = segment.Close()
	})
	if err := g.call(share.CallAttach, share.Attach{Version: share.Version, Sizes: sizes}, nil, segment.FD()); err != nil {
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
		return guestpkg.Replied(r)
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
	g := rawGuestOf(t, a, host.GuestLimits{})
	const endpoints = 64
	before := heapInUse()
	for i := range endpoints {
		if err := g.call(share.CallEndpoint, share.Endpoint{Number: fi.AnyNumber, Origin: uint64(i + 1)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if each := (heapInUse() - before) / endpoints; each > 8<<10 {
		t.Errorf("an endpoint costs the host %d bytes, want at most %d", each, 8<<10)
	}
}

// budgetLeft waits until nothing is taken from a budget.
func budgetLeft(t *testing.T, b *host.Budget) {
	t.Helper()
	testnet.Eventually(t, "all is given back", func() bool { return b.Used() == host.Cost{} && len(b.Of) == 0 })
}

// Each user may have as much of a budget as is left for others, root and the host's own
// user all of it.
func TestBudgetShares(t *testing.T) {
	t.Parallel()
	const alice, bob = 4_000_000_001, 4_000_000_002
	b := host.NewBudget("the daemon", host.Cost{Files: 100, Memory: 8})
	take := func(uid uint32, n int, want bool) {
		t.Helper()
		err := b.Take(uid, host.Cost{Files: n, Mappings: n})
		if (err == nil) != want {
			t.Errorf("user %d takes %d: %v", uid, n, err)
		}
		if err != nil && (!errors.Is(err, fi.ErrDenied) || !strings.Contains(err.Error(), "the daemon allows 100")) {
			t.Errorf("%v; want ErrDenied that names the daemon", err)
		}
	}
	take(alice, 0, true)
	b.Give(bob, host.Cost{})
	b.Give(alice, host.Cost{})
	take(alice, 51, false)
	take(alice, 50, true)
	take(alice, 1, false)
	take(bob, 26, false)
	take(bob, 25, true)
	take(0, 26, false)
	take(0, 20, true)
	take(uint32(os.Geteuid()), 5, true)
	take(0, 1, false)
	b.Give(alice, host.Cost{Files: 50, Mappings: 50})
	take(bob, 12, true)
	take(bob, 1, false)
	if err := b.Take(bob, host.Cost{Memory: 5}); err == nil || !strings.Contains(err.Error(), "bytes of memory") {
		t.Errorf("%v; want an error about memory", err)
	}
	b.Give(bob, host.Cost{Files: 37, Mappings: 37})
	b.Give(0, host.Cost{Files: 25, Mappings: 25})
	if (b.Used() != host.Cost{}) || len(b.Of) != 0 {
		t.Errorf("%+v of %d users is left", b.Used(), len(b.Of))
	}
}

// What a guest has is charged, refused beyond the budget with its name and that of the
// rule, and given back with the guest.
func TestGuestBudget(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	budget := host.NewBudget("guest-memory", host.Cost{Memory: 32 << 20, Files: 12, Mappings: 3})
	t.Run("guest", func(t *testing.T) {
		g := guestBy(t, hostingOf(t, a, host.GuestLimits{Arena: 1 << 20, Budgets: []*host.Budget{budget}, Rule: "rule 7"}), fi.DomainAttr{}, nil)
		// What came with a call is given back after its answer.
		testnet.Eventually(t, "six descriptors, one mapping and the segment", func() bool {
			u := budget.Used()
			return u.Files == 6 && u.Mappings == 1 && u.Memory >= 1<<20
		})
		register := func(size int) error {
			mem, err := mr.Memfd("m", size)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = mem.Close() })
			r, err := g.Register(mem, mr.Options{Access: mr.RemoteRead})
			if err == nil {
				t.Cleanup(func() { _ = r.Close() })
			}
			return err
		}
		before := budget.Used()
		if err := register(64 << 20); !errors.Is(err, fi.ErrDenied) || !strings.Contains(err.Error(), "rule 7") || !strings.Contains(err.Error(), "guest-memory allows 33554432") {
			t.Errorf("a region beyond the budget: %v", err)
		}
		testnet.Eventually(t, "a refusal costs nothing", func() bool { return budget.Used() == before })
		if err := errors.Join(register(4096), register(4096)); err != nil {
			t.Error(err)
		}
		if err := register(4096); !errors.Is(err, fi.ErrDenied) || !strings.Contains(err.Error(), "guest-memory allows") {
			t.Errorf("a mapping beyond the budget: %v", err)
		}
		p, err := g.Dial(t.Context(), b.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		w, err := xdpfab.Word[uint64](t.Context(), p, "words", 0)
		if err == nil {
			_, err = w.Add(t.Context(), 1)
		}
		if err != nil {
			t.Error(err)
		}
	})
	budgetLeft(t, budget)
}

// A few calls at a time cost nothing, so that a guest which may have no more can close
// what it has. Further ones are charged with what they bring.
func TestGuestCallsCost(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	budget := host.NewBudget("all", host.Cost{Memory: 64 << 10})
	g := host.NewGuest(a.Hosting(), nil, host.GuestLimits{Host: 2 * host.CallCost, Budgets: []*host.Budget{budget}, Rule: "rule 7"})
	c := &share.Call{Arguments: make([]byte, 1000)}
	pay := func(under int64, files, want int) (paid func(), err error) {
		t.Helper()
		g.Calling.Store(under)
		before := budget.Used()
		if paid, err = g.PayCall(c, files); err == nil && budget.Used() != (host.Cost{Memory: before.Memory + want, Files: before.Files + files}) {
			t.Errorf("%d calls: %+v is used, and %+v before; want %d more", under, budget.Used(), before, want)
		}
		return paid, err
	}
	var all []func()
	for _, under := range []int64{1, host.FreeCalls, host.FreeCalls + 1} {
		paid, err := pay(under, 1, map[bool]int{true: host.CallCost + 1000}[under > host.FreeCalls])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, paid)
	}
	before := budget.Used()
	if _, err := pay(host.FreeCalls+2, 1, 0); !errors.Is(err, fi.ErrDenied) || !strings.Contains(err.Error(), "more than 4 calls at a time") || !strings.Contains(err.Error(), "rule 7") {
		t.Errorf("a call beyond what the guest may have: %v", err)
	}
	if budget.Used() != before {
		t.Errorf("it has cost %+v beside %+v", budget.Used(), before)
	}
	for _, paid := range all {
		paid()
	}
	budgetLeft(t, budget)
}

// What programs have left counts for the budget of the next process, be it more than
// that leaves, until it is withdrawn.
func TestKeptIsCharged(t *testing.T) {
	s, _ := newSuccession(t)
	first := host.NewBudget("first", host.Cost{})
	s.limits = host.GuestLimits{Kept: 8192, Rule: "rule 7", Budgets: []*host.Budget{first}}
	g := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	r, err := g.NewRegion("kept", 8192)
	if err == nil {
		err = g.Keep(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.Node().Dev.(*guestpkg.Attached).EndTalk()
	left := host.Cost{Memory: 8192, Files: 1, Mappings: 1}
	testnet.Eventually(t, "the program's end", func() bool { return first.Used() == left })
	next := host.NewBudget("next", host.Cost{Memory: 4096})
	s.limits.Budgets = []*host.Budget{next}
	s.next()
	if budgetLeft(t, first); next.Used() != left {
		t.Errorf("%+v is used, want %+v", next.Used(), left)
	}
	k := s.dom.Hosting().Kept()
	if len(k) != 1 {
		t.Fatalf("kept: %+v", k)
	}
	if err := s.dom.Hosting().WithdrawKept(k[0].UID, k[0].Name); err != nil {
		t.Fatal(err)
	}
	budgetLeft(t, next)
}

// A guest may have so much of the host's own memory, and what it closes counts no more.
func TestGuestHostMemory(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	sizes := share.Sizes{Entries: 4096, Arena: share.MinArena, Arrivals: share.MinArrivals}
	g := rawGuestOf(t, a, host.GuestLimits{Host: host.OwnCost(sizes) + 2*host.EndpointCost, Rule: "rule 7"})
	endpoint := func(origin uint64) error {
		return g.call(share.CallEndpoint, share.Endpoint{Number: fi.AnyNumber, Origin: origin}, nil)
	}
	if err := errors.Join(endpoint(1), endpoint(2)); err != nil {
		t.Fatal(err)
	}
	if err := endpoint(3); !errors.Is(err, fi.ErrDenied) || !strings.Contains(err.Error(), "rule 7 allows one program") {
		t.Errorf("a third endpoint: %v", err)
	}
	if err := errors.Join(g.call(share.CallDrop, 1, nil), endpoint(3)); err != nil {
		t.Errorf("after one was given back: %v", err)
	}
}
