// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/progress"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// parked is an attendant whose goroutines make no progress.
type parked struct{}

func (parked) Attend(sig *progress.Signal) error { return sig.Park(context.Background()) }
func (parked) Alert()                            {}

// open makes a handler with one session, which tells of each call that has ended.
func open(f Function, requests, goroutines int) (*Handler, *Session, chan struct{}) {
	told := make(chan struct{}, 1000)
	h := New(f, requests, goroutines)
	h.Attend(parked{})
	return h, h.NewSession(wire.Addr{}, session.Party{}, func() { told <- struct{}{} }), told
}

func echo(_ context.Context, _ wire.Addr, request []byte) ([]byte, error) { return request, nil }

// A call takes no memory once the first ones have: the engines' threads ask, and take
// replies.
func TestCallAllocatesNothing(t *testing.T) {
	h, s, told := open(echo, 16, 1)
	defer h.Close()
	c := wire.Call{Request: make([]byte, 64), Most: 64}
	psn := uint32(0)
	if n := testing.AllocsPerRun(1000, func() {
		if status := s.Ask(psn, &c); status != wire.StatusOK {
			t.Fatal(status)
		}
		<-told
		if got, r, status, ok := s.Answered(); !ok || got != psn || status != wire.StatusOK || len(r.Bytes) != 64 {
			t.Fatal(got, r, status, ok)
		}
		s.Drop()
		psn++
	}); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
	s.Close()
	if h.Held() != 0 || len(h.parties) != 0 {
		t.Errorf("%d requests are held, and %d parties", h.Held(), len(h.parties))
	}
}

// Each party has as much room as is left for all others, and what ends gives its place
// back, however it ends.
func TestHandlerSharesRoom(t *testing.T) {
	may := make(chan struct{})
	h, s, told := open(func(_ context.Context, _ wire.Addr, request []byte) ([]byte, error) {
		<-may
		return request, nil
	}, 12, 2)
	other := h.NewSession(wire.Addr{}, session.Party{MAC: wire.MAC{1}}, func() {})
	fill := func(s *Session, from uint32) (n uint32) {
		for s.Ask(from+n, &wire.Call{Most: 8}) == wire.StatusOK {
			n++
		}
		return n
	}
	if a, b := fill(s, 0), fill(other, 0); a != 6 || b != 3 {
		t.Fatalf("%d and %d of 12 requests, want 6 and 3", a, b)
	}
	other.Close()
	s.Recall()
	close(may)
	ends := map[wire.Status]int{}
	for range 6 {
		<-told
		_, _, status, ok := s.Answered()
		if !ok {
			t.Fatal("no call has ended")
		}
		ends[status]++
		s.Drop()
	}
	if n := ends[wire.StatusOK]; n > 2 || n+ends[wire.StatusNotExecuted] != 6 {
		t.Errorf("%v; want two of them to have begun at most", ends)
	}
	if n := fill(s, 6); n < 1 {
		t.Error("no room, though all have ended")
	}
	s.Close()
	h.Close()
	for h.Held() > 0 { // a goroutine has it
		runtime.Gosched()
	}
}

// A handler that is closed has no more requests, and ends those that wait.
func TestHandlerIsClosed(t *testing.T) {
	h, s, told := open(func(ctx context.Context, _ wire.Addr, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, 16, 1)
	for psn := range uint32(4) {
		if status := s.Ask(psn, &wire.Call{Most: 8}); status != wire.StatusOK {
			t.Fatal(status)
		}
	}
	h.Close()
	if status := s.Ask(4, &wire.Call{}); status != wire.StatusNotExecuted {
		t.Error(status)
	}
	failed := 0
	for range 4 {
		<-told
		if _, r, status, _ := s.Answered(); status == wire.StatusOK && r.Kind == wire.ReplyFailed {
			failed++
		} else if status != wire.StatusNotExecuted {
			t.Error(status)
		}
		s.Drop()
	}
	if failed > 1 || h.Held() != 0 {
		t.Errorf("%d calls had begun, %d are held", failed, h.Held())
	}
}

// One goroutine stays when the requests have ended, whatever was asked at the same time,
// and no request is left lying.
func TestOneGoroutineStays(t *testing.T) {
	var both sync.WaitGroup
	h, s, told := open(func(_ context.Context, _ wire.Addr, request []byte) ([]byte, error) {
		if len(request) > 0 { // two of them meet, so there are two goroutines
			both.Done()
			both.Wait()
		}
		return nil, nil
	}, 16, 8)
	defer h.Close()
	psn := uint32(0)
	ask := func(n int, request []byte) {
		t.Helper()
		for range n {
			if status := s.Ask(psn, &wire.Call{Request: request, Most: 8}); status != wire.StatusOK {
				t.Fatal(status)
			}
			psn++
		}
		for range n {
			<-told
			if _, _, status, ok := s.Answered(); !ok || status != wire.StatusOK {
				t.Fatal(status, ok)
			}
			s.Drop()
		}
	}
	for i := range 10_000 {
		both.Add(2)
		ask(2, []byte{1})
		ask(1+i%3, nil)
	}
	testnet.Eventually(t, "one goroutine is left", func() bool { return h.goroutine.Load() == 1 })
	h.Close()
	testnet.Eventually(t, "no goroutine is left", func() bool { return h.goroutine.Load() == 0 })
}
