// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// resources are what a process can leak by this package.
type resources struct {
	fds    int
	rings  int // mappings of sockets
	memory int // KiB of address space
}

func takeStock(t testing.TB) (r resources) {
	t.Helper()
	runtime.GC() // closes what only finalizers know
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	r.fds, r.rings = len(fds), strings.Count(string(maps), "socket:")
	_, size, _ := strings.Cut(string(status), "VmSize:")
	r.memory, err = strconv.Atoi(strings.Fields(size)[0])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReopenLeavesNothing(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 2})
	b := open(t, p.B, Options{UDP: true, RingSize: 256})
	use := func() {
		a, err := tryOpen(p.A, Options{UDP: true}) // 2 queues of 8 MiB
		if err != nil {
			t.Fatal(err)
		}
		s := newStream(t, a, b, wire.UDP4, 1)
		s.run(t, a.Queues()[1], b.Queues()[1], 50, 8)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = tryOpen(p.A, Options{Copy: 1, RingSize: 32}) // fails late: no zero-copy
		refused(t, err, nil)
		clean(t, p.A)
	}
	use() // what is made once is there now
	before, goroutines := takeStock(t), goleak.IgnoreCurrent()
	const laps = 20
	for range laps {
		use()
	}
	after := takeStock(t)
	// Address space also grows by the heap and by threads; a leak of one queue a lap
	// would come to 160 MiB.
	if after.fds > before.fds || after.rings > before.rings || after.memory > before.memory+laps*4<<10 {
		t.Errorf("after reopening %d times: %+v, before: %+v", laps, after, before)
	}
	goleak.VerifyNone(t, goroutines)
}

// The kernel's own traffic does not notice: UDP to a port of its own and TCP, over
// IPv4 and IPv6, while xdpfab's frames go over the same cable.
func TestKernelTrafficPasses(t *testing.T) {
	a, b := openPair(t, testnet.Options{}, Options{UDP: true, RingSize: 256})
	s := newStream(t, a, b, wire.UDP4, 0)
	for _, at := range []struct{ local, remote netip.Addr }{{a.side.IP4, b.side.IP4}, {a.side.IP6, b.side.IP6}} {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(network+" "+at.remote.String(), func(t *testing.T) {
				echo := serve(t, b.side, network, at.remote)
				var c net.Conn
				err := a.side.Do(func() (err error) { c, err = net.DialTimeout(network, echo, patience); return err })
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(patience))
				for i := range 20 {
					s.run(t, a.Queues()[0], b.Queues()[0], 20, 4)
					want := strings.Repeat(strconv.Itoa(i%10), 50+i*50)
					if _, err := io.WriteString(c, want); err != nil {
						t.Fatal(err)
					}
					got := make([]byte, len(want))
					if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
						t.Fatalf("echo of %d bytes: %v", len(want), err)
					}
				}
			})
		}
	}
}

// serve echoes until the test ends, and returns its address.
func serve(t *testing.T, side *testnet.Side, network string, ip netip.Addr) (addr string) {
	t.Helper()
	at := netip.AddrPortFrom(ip, 0).String()
	var closer io.Closer
	err := side.Do(func() error {
		if network == "udp" {
			c, err := net.ListenPacket(network, at)
			if err != nil {
				return err
			}
			closer, addr = c, c.LocalAddr().String()
			go func() {
				buf := make([]byte, 2048)
				for {
					n, from, err := c.ReadFrom(buf)
					if err != nil {
						return
					}
					c.WriteTo(buf[:n], from)
				}
			}()
			return nil
		}
		l, err := net.Listen(network, at)
		if err != nil {
			return err
		}
		closer, addr = l, l.Addr().String()
		go func() {
			if c, err := l.Accept(); err == nil {
				io.Copy(c, c)
				c.Close()
			}
		}()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closer.Close() })
	return addr
}
