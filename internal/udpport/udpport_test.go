// SPDX-License-Identifier: Apache-2.0

//go:build linux

package udpport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// open opens a device on a loopback interface of its own.
func open(t testing.TB, name string, o Options) (d *Device, err error) {
	t.Helper()
	err = testnet.OnLoopback(func() (err error) {
		d, err = Open(name, o)
		return err
	})
	if err == nil {
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return d, err
}

// two opens two devices, with the way from the first one to the second one.
func two(t testing.TB, o Options) (a, b *Device, way wire.Template) {
	t.Helper()
	var err error
	if a, err = open(t, testnet.LoopbackAddr().String(), o); err != nil {
		t.Fatal(err)
	}
	if b, err = open(t, testnet.LoopbackAddr().String(), o); err != nil {
		t.Fatal(err)
	}
	l, err := a.Link(context.Background(), wire.Addr{IP: b.Addrs()[0]})
	if err != nil {
		t.Fatal(err)
	}
	if way, err = wire.NewTemplate(l); err != nil {
		t.Fatal(err)
	}
	return a, b, way
}

// send queues a frame of n bytes, all equal to mark, and reports whether there was room.
func send(p port, way *wire.Template, n int, mark byte) bool {
	b := p.Buffer()
	if b == nil {
		return false
	}
	for i := range n {
		b[way.Len()+i] = mark
	}
	p.Send(way.Put(b, n))
	return true
}

// scratch is for receive: a local variable would be allocated by each call.
var scratch [burst][]byte

// receive waits for n packets and hands each to f.
func receive(t testing.TB, p port, n int, f func(packet []byte)) {
	t.Helper()
	packets := scratch[:]
	for end := time.Now().Add(testnet.Patience); n > 0; {
		got := p.Receive(packets)
		for _, b := range packets[:got] {
			f(b)
		}
		p.Release()
		if n -= got; n > 0 && got == 0 {
			if time.Now().After(end) {
				t.Fatalf("%d packets have not arrived", n)
			}
			p.Wait(time.Second)
		}
	}
}

var kinds = map[string]Options{"gathered": {}, "single": {Single: true}, "portable": {Portable: true}}

// Frames of all lengths arrive whole, in order, with the addresses of both ends.
func TestFramesArriveWhole(t *testing.T) {
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			a, b, way := two(t, o)
			most := a.MTU() - wire.UDP4.Overhead()
			var lengths []int
			for range 40 { // as a burst of requests is: equal, and a shorter one at the end
				lengths = append(lengths, most)
			}
			lengths = append(lengths, 700, 46, 700, 700, 46, 47, 1400, most, most, 1)
			for i, n := range lengths {
				if !send(a.queue, &way, n, byte(i)) {
					t.Fatal("no buffer")
				}
			}
			if err := a.queue.Flush(); err != nil {
				t.Fatal(err)
			}
			at := 0
			receive(t, b.queue, len(lengths), func(p []byte) {
				w := wire.WayOf(p)
				if w.From != a.Addrs()[0].As16() || w.To != b.Addrs()[0].As16() {
					t.Errorf("packet %d: from %v to %v", at, netip.AddrFrom16(w.From), netip.AddrFrom16(w.To))
				}
				if want := bytes.Repeat([]byte{byte(at)}, lengths[at]); !bytes.Equal(p[wire.WayLen:], want) {
					t.Errorf("packet %d: %d bytes that begin with %d, want %d and %d", at, len(p)-wire.WayLen,
						p[wire.WayLen], lengths[at], byte(at))
				}
				at++
			})
		})
	}
}

// One call of the kernel moves a burst: nothing is allocated, and as many packets as fit
// into the port wait in it until Flush.
func TestBurstsAllocateNothing(t *testing.T) {
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			a, b, way := two(t, o)
			round := func() {
				for i := range 20 {
					send(a.queue, &way, 1400, byte(i))
				}
				_ = a.queue.Flush()
				receive(t, b.queue, 20, func([]byte) {})
			}
			for range 10 { // the portable port makes as many buffers as wait at once
				round()
			}
			if n := testing.AllocsPerRun(100, round); n > 0 {
				t.Errorf("%v allocations a burst", n)
			}
		})
	}
}

// A thread that never waits gets its packets soon, also if it has the only processor.
func TestSpinnersGetPackets(t *testing.T) {
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			a, b, way := two(t, o)
			const rounds, most = 50, 20_000 // without a pause, one makes over 100,000 calls in 10 ms
			calls := 0
			for range rounds {
				send(a.queue, &way, 46, 1)
				_ = a.queue.Flush()
				for got := 0; got == 0 && calls <= rounds*most; calls++ {
					got = b.queue.Receive(scratch[:])
				}
				b.queue.Release()
			}
			if calls > rounds*most {
				t.Errorf("over %d calls of Receive for %d packets", rounds*most, rounds)
			}
		})
	}
}

// The transmit buffers end, and are there again once the kernel has taken the packets.
func TestBuffersEnd(t *testing.T) {
	a, b, way := two(t, Options{})
	n := 0
	for send(a.queue, &way, 46, 1) {
		n++
	}
	if n != outgoing {
		t.Errorf("room for %d packets, want %d", n, outgoing)
	}
	_ = a.queue.Flush()
	receive(t, b.queue, n, func([]byte) {})
	if a.queue.Buffer() == nil {
		t.Error("no buffer after all have been sent")
	}
}

// A port that is woken does not wait; nor one that a packet is there for.
func TestWaitEnds(t *testing.T) {
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			a, b, way := two(t, o)
			b.queue.Wake()
			b.queue.Wait(testnet.Patience)
			send(a.queue, &way, 46, 1)
			_ = a.queue.Flush()
			b.queue.Wait(testnet.Patience)
			receive(t, b.queue, 1, func([]byte) {})
			done := make(chan struct{})
			go func() { defer close(done); b.queue.Wait(testnet.Patience) }()
			b.queue.Wake()
			<-done
		})
	}
}

// Two devices cannot have one address, and the error says so.
func TestAddressInUse(t *testing.T) {
	addr := testnet.LoopbackAddr().String()
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			if name == "gathered" {
				if _, err := open(t, addr, o); err != nil {
					t.Fatal(err)
				}
			}
			first, err := open(t, testnet.LoopbackAddr().String(), o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := open(t, first.Name(), o); !errors.Is(err, ErrInUse) || !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("%v, want ErrInUse", err)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, want := range map[string]error{
		"nothing0": nil, "203.0.113.77": ErrNoAddress, "": nil, "fe80::1": ErrNoAddress,
	} {
		if _, err := open(t, name, Options{}); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
}

// There are ways to addresses that the kernel has routes for, from the device's own
// address. An Ethernet address has none.
func TestLink(t *testing.T) {
	a, b, _ := two(t, Options{})
	ctx := context.Background()
	l, err := a.Link(ctx, wire.Addr{IP: a.Addrs()[0]})
	if err != nil || l.LocalIP != l.RemoteIP || l.Medium != wire.OnSocket {
		t.Errorf("to itself: %+v, %v", l, err)
	}
	for _, ip := range []string{"198.51.100.1", "fd00::1"} {
		if l, err := a.Link(ctx, wire.Addr{IP: netip.MustParseAddr(ip)}); !errors.Is(err, ErrNoRoute) {
			t.Errorf("%s: %+v, %v, want ErrNoRoute", ip, l, err)
		}
	}
	if _, err := a.Link(ctx, wire.Addr{MAC: wire.MAC{2, 0, 0, 0, 0, 1}}); err == nil {
		t.Error("a way to an Ethernet address")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Link(ctx, wire.Addr{IP: a.Addrs()[0]}); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

// A sender whose addresses are those of many nodes, or of the link alone, gets no answer.
func TestSingle(t *testing.T) {
	for a, want := range map[string]bool{
		"10.0.0.1": true, "127.0.0.1": true, "0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false,
		"fd00::1": true, "::1": true, "::": false, "ff02::1": false, "fe80::1": false,
	} {
		as16 := netip.MustParseAddr(a).As16()
		if got := single(&as16); got != want {
			t.Errorf("%s: %t", a, got)
		}
	}
}

func BenchmarkBurst(b *testing.B) {
	for name, o := range kinds {
		for _, n := range []int{1, 20} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				x, y, way := two(b, o)
				b.ReportAllocs()
				for b.Loop() {
					for range n {
						send(x.queue, &way, 1400, 1)
					}
					_ = x.queue.Flush()
					receive(b, y.queue, n, func([]byte) {})
				}
				b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "packets/s")
			})
		}
	}
}
