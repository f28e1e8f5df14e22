// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// counted counts how often a function has each request, and answers with it.
type counted struct {
	mu   sync.Mutex
	runs map[string]int
}

func (c *counted) answer(_ context.Context, _ xdpfab.Sender, request []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs == nil {
		c.runs = map[string]int{}
	}
	c.runs[string(request)]++
	return fmt.Appendf(nil, "re %s", request), nil
}

func (c *counted) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.runs)
}

// callers has several goroutines call a handler, each so many times, with requests that
// differ, and checks what comes back. It returns how many ended without success.
func callers(t *testing.T, p *xdpfab.Peer, life string, of, times int, c *counted) (failed int) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	ends := map[string]error{}
	for i := range of {
		all.Go(func() {
			reply := make([]byte, 100)
			for j := range times {
				request := fmt.Sprintf("%s %d %d", life, i, j)
				n, err := p.Call(ctx(t), []byte(request), reply)
				if err == nil && string(reply[:n]) != "re "+request {
					t.Errorf("the reply to %q is %q", request, reply[:n])
				}
				mu.Lock()
				ends[request] = err
				mu.Unlock()
			}
		})
	}
	all.Wait()
	runs := c.all()
	for request, err := range ends {
		least, most := 1, 1
		if errors.Is(err, xdpfab.ErrNotExecuted) {
			most = 0
		}
		if err != nil {
			failed++
			least = 0
		}
		if n := runs[request]; n < least || n > most {
			t.Errorf("the function had request %q %d times; the caller got %v", request, n, err)
		}
	}
	return failed
}

// Under every fault of a link the function has each request once, and the caller gets the
// reply to it.
func TestCallsOnBadLinks(t *testing.T) {
	w := newNetwork(t, 2)
	bad := xdpfab.Faults{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.05}
	if err := errors.Join(w.SetFaults(0, 1, bad), w.SetFaults(1, 0, bad)); err != nil {
		t.Fatal(err)
	}
	var c counted
	if _, err := w.Node(0).Handle(xdpfab.HandlerAttr{Number: 5}, c.answer); err != nil {
		t.Fatal(err)
	}
	p, err := w.Node(1).Dial(ctx(t), w.Node(0).Name(5))
	if err != nil {
		t.Fatal(err)
	}
	if failed := callers(t, p, "one", 8, 40, &c); failed > 0 {
		t.Errorf("%d calls have failed", failed)
	}
}

// A restart of the node with the function ends the calls under way, and says what is
// known of each. Later ones reach the new function.
func TestCallsMeetRestarts(t *testing.T) {
	w := newNetwork(t, 2)
	var c counted
	serve := func(d *xdpfab.Domain) {
		if _, err := d.Handle(xdpfab.HandlerAttr{Number: 5}, c.answer); err != nil {
			t.Error(err)
		}
	}
	serve(w.Node(0))
	p, err := w.Node(1).Dial(ctx(t), w.Node(0).Name(5))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		callers(t, p, "beside restarts", 8, 60, &c)
	}()
	for range 3 {
		before := len(c.all())
		testnet.Eventually(t, "calls go on", func() bool {
			select {
			case <-done:
				return true
			default:
				return len(c.all()) > before+5
			}
		})
		d, err := w.Restart(0)
		if err != nil {
			t.Fatal(err)
		}
		serve(d)
	}
	<-done
	testnet.Eventually(t, "the last life answers", func() bool {
		n, err := p.Call(ctx(t), []byte("hello"), make([]byte, 20))
		return err == nil && n == 8
	})
}

// blocked is a function that does not return before it may, and says what it has.
type blocked struct {
	has chan string
	may chan struct{}
}

func newBlocked() *blocked { return &blocked{make(chan string, 100), make(chan struct{})} }

func (b *blocked) answer(ctx context.Context, _ xdpfab.Sender, request []byte) ([]byte, error) {
	b.has <- string(request)
	<-b.may
	return request, ctx.Err()
}

// call begins a call that runs beside the test.
func call(t *testing.T, ctx context.Context, p *xdpfab.Peer, request string, reply []byte) chan error {
	end := make(chan error, 1)
	go func() {
		n, err := p.Call(ctx, []byte(request), reply)
		if err == nil && string(reply[:n]) != request {
			t.Errorf("the reply to %q is %q", request, reply[:n])
		}
		end <- err
	}()
	return end
}

// A caller that lets go learns that the outcome is unknown, and Settle waits for the
// reply.
func TestCallSettled(t *testing.T) { served(t, testCallSettled) }

func testCallSettled(t *testing.T, f *fixture) {
	b := newBlocked()
	_, p := handle(t, f, xdpfab.HandlerAttr{}, b.answer)
	over, cancel := context.WithCancel(ctx(t))
	reply := make([]byte, 20)
	end := call(t, over, p, "question", reply)
	<-b.has
	cancel()
	err := <-end
	if !errors.Is(err, xdpfab.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(b.may)
	n, err := xdpfab.Settle(ctx(t), 0, err)
	if err != nil || string(reply[:n]) != "question" {
		t.Errorf("%q, %v", reply[:n], err)
	}
}

// A handler that is closed has no more requests: those that wait for its goroutine are
// not executed, the outcome of the one that it has is unknown, and its context ends. So
// does that of a request whose caller is gone.
func TestHandlerCloses(t *testing.T) {
	for _, who := range []string{"handler", "domain", "caller"} {
		t.Run(who, func(t *testing.T) {
			w := newNetwork(t, 2)
			gone, has := make(chan struct{}, 10), make(chan struct{}, 10)
			h, err := w.Node(0).Handle(xdpfab.HandlerAttr{Number: 5, Goroutines: 1},
				func(ctx context.Context, _ xdpfab.Sender, request []byte) ([]byte, error) {
					has <- struct{}{}
					<-ctx.Done()
					gone <- struct{}{}
					return request, nil
				})
			if err != nil {
				t.Fatal(err)
			}
			p, err := w.Node(1).Dial(ctx(t), w.Node(0).Name(5))
			if err != nil {
				t.Fatal(err)
			}
			running := call(t, ctx(t), p, "running", make([]byte, 20))
			<-has
			waiting := call(t, ctx(t), p, "waiting", make([]byte, 20))
			testnet.Eventually(t, "the other request is there", func() bool { return xdpfab.HeldRequests(h) == 2 })
			switch who {
			case "handler":
				err = h.Close()
			case "domain":
				err = w.Node(0).CloseAll()
			case "caller":
				err = p.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			<-gone
			if err := <-running; !errors.Is(err, xdpfab.ErrOutcomeUnknown) && err != nil && who != "caller" {
				t.Errorf("the call that ran: %v", err)
			}
			if err := <-waiting; who != "caller" && !errors.Is(err, xdpfab.ErrNotExecuted) {
				t.Errorf("the call that waited: %v", err)
			}
			testnet.Eventually(t, "nothing is held", func() bool { return xdpfab.HeldRequests(h) == 0 })
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a handler holds is bounded, and a function that does not return costs no more than
// its place.
func TestHandlerIsFull(t *testing.T) { served(t, testHandlerIsFull) }

func testHandlerIsFull(t *testing.T, f *fixture) {
	b := newBlocked()
	h, p := handle(t, f, xdpfab.HandlerAttr{Requests: 8, Goroutines: 2}, b.answer)
	var ends []chan error
	for i := range 4 { // half of all, since the caller is alone
		ends = append(ends, call(t, ctx(t), p, fmt.Sprint(i), make([]byte, 20)))
	}
	testnet.Eventually(t, "four are there", func() bool { return xdpfab.HeldRequests(h) == 4 })
	_, err := p.Call(ctx(t), []byte("more"), nil)
	if !errors.Is(err, xdpfab.ErrNotExecuted) || !errors.Is(err, xdpfab.ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	if n := len(b.has); n > 2 {
		t.Errorf("%d run at a time, want 2", n)
	}
	close(b.may)
	for _, end := range ends {
		if err := <-end; err != nil {
			t.Error(err)
		}
	}
	if n, err := p.Call(ctx(t), []byte("then"), make([]byte, 20)); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// What cannot be a handler, or has none, is refused.
func TestHandlerRefused(t *testing.T) { served(t, testHandlerRefused) }

func testHandlerRefused(t *testing.T, f *fixture) {
	for _, a := range []xdpfab.HandlerAttr{{Requests: -1}, {Requests: 1 << 20}, {Goroutines: -1}, {Number: 1 << 20}} {
		if _, err := f.server.Handle(a, upper); err == nil {
			t.Errorf("a handler of %+v", a)
		}
	}
	if _, err := f.server.Handle(xdpfab.HandlerAttr{}, nil); err == nil {
		t.Error("a handler without a function")
	}
	box, err := f.server.NewMailbox(xdpfab.MailboxAttr{Number: 7})
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.client.Dial(ctx(t), box.Name())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Call(ctx(t), []byte("x"), nil); !errors.Is(err, xdpfab.ErrNotExecuted) || !errors.Is(err, xdpfab.ErrOpNotSupported) {
		t.Errorf("a mailbox has answered: %v", err)
	}
	_, p = handle(t, f, xdpfab.HandlerAttr{}, upper)
	if err := p.Send(ctx(t), []byte("x")); !errors.Is(err, fi.ErrNoReceiver) {
		t.Errorf("a handler takes messages: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Call(ctx(t), nil, nil); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("by a closed peer: %v", err)
	}
}
