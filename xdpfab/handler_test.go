// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

type answer = func(ctx context.Context, from xdpfab.Sender, request []byte) ([]byte, error)

// handle makes a handler at the server, and a peer of it at the client.
func handle(t testing.TB, f *fixture, attr xdpfab.HandlerAttr, fn answer) (*xdpfab.Handler, *xdpfab.Peer) {
	t.Helper()
	attr.Number = 9
	h, err := f.server.Handle(attr, fn)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.client.Dial(ctx(t), f.server.Name(9))
	if err != nil {
		t.Fatal(err)
	}
	return h, p
}

// served runs a test with a server that has the interface itself, and with one behind the
// daemon that has it.
func served(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Run("by a program with an interface", func(t *testing.T) {
		test(t, setUp(t, xdpfab.DomainAttr{}, 64<<10))
	})
	t.Run("by a program behind a daemon", func(t *testing.T) {
		test(t, setUpBoth(t, xdpfab.DomainAttr{}, xdpfab.DomainAttr{Attach: fi.AttachAlways}, 64<<10))
	})
}

func upper(_ context.Context, _ xdpfab.Sender, request []byte) ([]byte, error) {
	return bytes.ToUpper(request), nil
}

// A request and its reply, in each way of making progress.
func TestCall(t *testing.T) {
	progressModes(t, func(t *testing.T, attr xdpfab.DomainAttr) {
		f := setUpBoth(t, attr, xdpfab.DomainAttr{}, 64<<10)
		_, p := handle(t, f, xdpfab.HandlerAttr{}, upper)
		reply := make([]byte, 2000)
		for _, n := range []int{0, 1, 5, 80, 81, 300, 1400} {
			request := bytes.Repeat([]byte("x"), n)
			got, err := p.Call(ctx(t), request, reply)
			if err != nil || got != n || !bytes.Equal(reply[:got], bytes.ToUpper(request)) {
				t.Fatalf("%d bytes: %d, %v", n, got, err)
			}
		}
	})
}

// Functions that run for long hold up neither later calls nor other operations.
func TestCallsOvertake(t *testing.T) { served(t, testCallsOvertake) }

func testCallsOvertake(t *testing.T, f *fixture) {
	release := make(chan struct{})
	_, p := handle(t, f, xdpfab.HandlerAttr{}, func(_ context.Context, _ xdpfab.Sender, request []byte) ([]byte, error) {
		if request[0] == 's' {
			<-release
		}
		return request, nil
	})
	const slow = 40
	var all sync.WaitGroup
	for i := range slow {
		all.Go(func() {
			reply := make([]byte, 10)
			if n, err := p.Call(ctx(t), []byte(fmt.Sprint("s", i)), reply); err != nil || string(reply[:n]) != fmt.Sprint("s", i) {
				t.Errorf("slow call %d: %q, %v", i, reply[:n], err)
			}
		})
	}
	for i := range 20 {
		reply := make([]byte, 10)
		if n, err := p.Call(ctx(t), []byte(fmt.Sprint("f", i)), reply); err != nil || string(reply[:n]) != fmt.Sprint("f", i) {
			t.Errorf("fast call %d: %q, %v", i, reply[:n], err)
		}
	}
	close(release)
	all.Wait()
}

// What the function ends with reaches the caller, and nothing else ends.
func TestCallEndings(t *testing.T) { served(t, testCallEndings) }

func testCallEndings(t *testing.T, f *fixture) {
	_, p := handle(t, f, xdpfab.HandlerAttr{Goroutines: 1}, func(_ context.Context, _ xdpfab.Sender, request []byte) ([]byte, error) {
		switch string(request) {
		case "error":
			return nil, errors.New("no such thing")
		case "panic":
			panic("out of range")
		case "exit":
			runtime.Goexit()
		case "long":
			return bytes.Repeat([]byte("z"), 5000), nil
		}
		return request, nil
	})
	for request, want := range map[string]xdpfab.FunctionError{
		"error": {Text: "no such thing"},
		"panic": {Text: "out of range", Panic: true},
		"exit":  {Text: "the function ended its goroutine", Panic: true},
	} {
		want.Peer = p.Addr()
		var got *xdpfab.FunctionError
		if _, err := p.Call(ctx(t), []byte(request), nil); !errors.As(err, &got) || *got != want {
			t.Errorf("%s: %v, want %v", request, err, &want)
		}
	}
	for _, room := range []int{0, 10, 300, 5000} {
		reply := make([]byte, room)
		n, err := p.Call(ctx(t), []byte("long"), reply)
		if n != 5000 || !errors.Is(err, xdpfab.ErrTruncated) || room < 1400 && !bytes.Equal(reply, bytes.Repeat([]byte("z"), room)) {
			t.Errorf("a reply of 5000 bytes into %d: %d, %v", room, n, err)
		}
	}
	for _, n := range []int{1500, 70000} {
		if _, err := p.Call(ctx(t), make([]byte, n), nil); !errors.Is(err, xdpfab.ErrNotExecuted) ||
			!strings.Contains(err.Error(), "want at most ") {
			t.Errorf("a request of %d bytes: %v", n, err)
		}
	}
	if n, err := p.Call(ctx(t), []byte("fine"), make([]byte, 10)); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// The longest request and reply pass, with the numbers that the documentation states.
// One byte more is refused, or cut, and the text has the number.
func TestLongestCall(t *testing.T) {
	const most = 1452 // of Handle's doc, at the MTU of a Pipe
	f := setUp(t, xdpfab.DomainAttr{}, 64<<10)
	_, p := handle(t, f, xdpfab.HandlerAttr{}, func(_ context.Context, _ xdpfab.Sender, request []byte) ([]byte, error) {
		return append(request, request...)[:binary.LittleEndian.Uint16(request)], nil
	})
	ask := func(request, reply int) (int, error) {
		b := bytes.Repeat([]byte("x"), request)
		binary.LittleEndian.PutUint16(b, uint16(reply))
		return p.Call(ctx(t), b, make([]byte, 2000))
	}
	if n, err := ask(most, most); n != most || err != nil {
		t.Errorf("%d bytes each way: %d, %v", most, n, err)
	}
	want := fmt.Sprintf("want at most %d bytes", most)
	behind := setUpBoth(t, xdpfab.DomainAttr{Attach: fi.AttachAlways}, xdpfab.DomainAttr{}, 64<<10)
	_, q := handle(t, behind, xdpfab.HandlerAttr{}, upper)
	for _, p := range []*xdpfab.Peer{p, q} { // a client with an interface, and one behind a daemon
		for _, n := range []int{most + 1, 2000, 1 << 16} {
			if _, err := p.Call(ctx(t), make([]byte, n), nil); !errors.Is(err, xdpfab.ErrNotExecuted) ||
				!errors.Is(err, xdpfab.ErrTooMany) || !strings.Contains(err.Error(), want) {
				t.Errorf("a request of %d bytes: %v, want %q", n, err, want)
			}
		}
	}
	if _, err := ask(most+1, 2); !errors.Is(err, xdpfab.ErrNotExecuted) || !strings.Contains(err.Error(), want) {
		t.Errorf("a request of %d bytes: %v, want %q", most+1, err, want)
	}
	if n, err := ask(most, most+1); n != most+1 || !errors.Is(err, xdpfab.ErrTruncated) ||
		!strings.Contains(err.Error(), fmt.Sprint(most, " of which")) {
		t.Errorf("a reply of %d bytes: %d, %v", most+1, n, err)
	}
	const shorten = "one frame takes at most 1452: have the function reply with no more, and give a buffer of as many"
	for _, x := range []struct {
		reply, room int
		want        string
	}{{2900, 10, shorten}, {2900, 2000, shorten}, {1000, 10, "10 of which have come: give a buffer of 1000 bytes"}} {
		b := binary.LittleEndian.AppendUint16(nil, uint16(x.reply))
		_, err := p.Call(ctx(t), append(b, make([]byte, most-2)...), make([]byte, x.room))
		checkText(t, "a reply that is cut", err, x.want, xdpfab.ErrTruncated)
	}
}

// An error of a function has the prefix once, even if its own text begins with it.
func TestFunctionErrorHasOnePrefix(t *testing.T) {
	w := newNetwork(t, 2)
	failing := func(context.Context, xdpfab.Sender, []byte) ([]byte, error) {
		return nil, errors.New("xdpfab: one\nxdpfab: two")
	}
	if _, err := w.Node(1).Handle(xdpfab.HandlerAttr{Number: 9}, failing); err != nil {
		t.Fatal(err)
	}
	p, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(9))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Call(ctx(t), nil, nil)
	checkText(t, "Call", err, "/9: one; two")
}

// A function may close its own handler. Its caller does not get the reply.
func TestHandlerClosesItself(t *testing.T) {
	w := newNetwork(t, 2)
	var h *xdpfab.Handler
	made := make(chan struct{})
	h, err := w.Node(1).Handle(xdpfab.HandlerAttr{Number: 9}, func(context.Context, xdpfab.Sender, []byte) ([]byte, error) {
		<-made
		return []byte("closed"), h.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	close(made)
	p, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(9))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.Call(ctx(t), nil, make([]byte, 8)); !errors.Is(err, xdpfab.ErrOutcomeUnknown) {
		t.Errorf("%v, want an unknown outcome", err)
	}
	_, err = p.Call(ctx(t), nil, nil)
	checkText(t, "after the end", err, "", xdpfab.ErrNotExecuted)
}
