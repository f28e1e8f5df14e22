// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultwire

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testType = 0x88b6     // the other EtherType for local experiments (IEEE 802)
	frameLen = 120        // bytes
	fillByte = byte(0xa5) // of all bytes after the number
	small    = 16         // frames that are under way at once, so that no queue overflows
)

// probe is a packet socket on a side: it sends numbered frames and sees those that
// arrive.
type probe struct {
	wire *Wire
	dir  Direction // that it sends in
	fd   int
	to   unix.SockaddrLinklayer
	hdr  [14]byte
	buf  [4096]byte
}

// newProbes makes a probe on either side of the wire. From then on the wire
// carries no other frames, so that counts are exact.
func newProbes(t *testing.T, w *Wire) (a, b *probe) {
	t.Helper()
	for _, p := range w.pairs {
		silence(t, p.A)
		silence(t, p.B)
	}
	a, b = newProbe(t, w.A, w.B), newProbe(t, w.B, w.A)
	a.wire, a.dir = w, AtoB
	b.wire, b.dir = w, BtoA
	// Once these have passed, so has everything that the kernels sent before.
	for _, way := range [][2]*probe{{a, b}, {b, a}} {
		const last = 1 << 30
		way[0].send(t, last)
		for number(way[1].receive(t)) != last {
		}
	}
	return a, b
}

// silence keeps a side's kernel from sending anything of its own.
func silence(t *testing.T, s *testnet.Side) {
	t.Helper()
	err := s.Do(func() error {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+s.IfName+"/disable_ipv6", []byte("1"), 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func newProbe(t *testing.T, from, to *testnet.Side) *probe {
	t.Helper()
	const all = unix.ETH_P_ALL>>8&0xff | unix.ETH_P_ALL&0xff<<8
	p := &probe{to: unix.SockaddrLinklayer{Protocol: all, Ifindex: from.IfIndex, Halen: 6}}
	err := from.Do(func() (err error) {
		p.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
		if err != nil {
			return err
		}
		t.Cleanup(func() { unix.Close(p.fd) })
		// A test may send more than the default buffer holds before it reads.
		_ = unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
		return unix.Bind(p.fd, &p.to)
	})
	if err != nil {
		t.Fatal(err)
	}
	copy(p.hdr[:], to.MAC)
	copy(p.hdr[6:], from.MAC)
	binary.BigEndian.PutUint16(p.hdr[12:], testType)
	return p
}

// send emits frame number n.
func (p *probe) send(t *testing.T, n int) {
	t.Helper()
	var f [frameLen]byte
	for i := range f {
		f[i] = fillByte
	}
	copy(f[:], p.hdr[:])
	binary.BigEndian.PutUint32(f[14:], uint32(n))
	if err := unix.Sendto(p.fd, f[:], 0, &p.to); err != nil {
		t.Fatal(err)
	}
}

// receive returns the next frame.
func (p *probe) receive(t *testing.T) []byte {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(testnet.Patience.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			t.Fatalf("no frame within %v; the wire: %v", testnet.Patience, p.wire.Stats())
		}
		k, from, err := unix.Recvfrom(p.fd, p.buf[:], 0)
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := from.(*unix.SockaddrLinklayer); !ok || a.Pkttype != unix.PACKET_OUTGOING {
			return p.buf[:k]
		}
	}
}

// number returns the number of an undamaged frame, -1 for any other.
func number(f []byte) int {
	if len(f) != frameLen {
		return -1
	}
	for _, b := range f[18:] {
		if b != fillByte {
			return -1
		}
	}
	return int(binary.BigEndian.Uint32(f[14:]))
}

// sent waits until the wire has taken so many frames of the probe's since base, and
// returns what it has done with them so far.
func (p *probe) sent(t *testing.T, base Stats, n int) (done [numEvents]int) {
	t.Helper()
	testnet.Eventually(t, "the wire takes what was sent", func() bool {
		now := p.wire.Stats()
		for e := range done {
			done[e] = int(now[p.dir][e] - base[p.dir][e])
		}
		return done[Received] >= n
	})
	return done
}

// inFlight is how many frames the wire still has to deliver.
func inFlight(done [numEvents]int) int {
	return done[Received] - done[Cut] - done[Lost] + done[Duplicated] + done[Replayed] -
		done[Overflowed] - done[Refused] - done[Astray] - done[Forwarded]
}

// exchange sends n frames, numbered from first on, in small bursts and returns the
// numbers that arrived. It relies on the wire's counts to know when the frames
// have passed.
func exchange(t *testing.T, from, to *probe, first, n int) (got []int) {
	t.Helper()
	base := from.wire.Stats()
	take := func(forwarded int) {
		for len(got) < forwarded {
			got = append(got, number(to.receive(t)))
		}
	}
	for i := range n {
		from.send(t, first+i)
		if i%small == small-1 {
			take(from.sent(t, base, i+1)[Forwarded])
		}
	}
	var done [numEvents]int
	testnet.Eventually(t, "the wire delivers what it holds", func() bool {
		done = from.sent(t, base, n)
		return inFlight(done) == 0
	})
	take(done[Forwarded])
	return got
}
