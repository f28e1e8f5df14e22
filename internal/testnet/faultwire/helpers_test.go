// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultwire

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testType = 0x88b6     // the other EtherType for local experiments (IEEE 802)
	frameLen = 120        // bytes
	patience = 20_000     // ms that a frame is waited for before the test fails
	settled  = 60         // ms without a frame after which no more are expected
	fillByte = byte(0xa5) // of everything behind the number
)

// probe is a packet socket on a side: it sends numbered frames and sees what comes.
type probe struct {
	fd  int
	to  unix.SockaddrLinklayer
	hdr [14]byte
	buf [4096]byte
}

func newProbe(t *testing.T, from, to *testnet.Side) *probe {
	t.Helper()
	const proto = testType>>8 | testType&0xff<<8
	p := &probe{to: unix.SockaddrLinklayer{Protocol: proto, Ifindex: from.IfIndex, Halen: 6}}
	err := from.Do(func() (err error) {
		p.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
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

// receive returns the next frame, or nil if none comes within the time.
func (p *probe) receive(t *testing.T, ms int) []byte {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	for end := time.Now().Add(time.Duration(ms) * time.Millisecond); ; {
		n, err := unix.Poll(fds, max(0, int(time.Until(end).Milliseconds())))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return nil
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

// exchange sends n frames in small bursts and returns the numbers that arrived.
func exchange(t *testing.T, from, to *probe, n int) (got []int) {
	t.Helper()
	take := func(ms int) {
		for f := to.receive(t, ms); f != nil; f = to.receive(t, ms) {
			got = append(got, number(f))
		}
	}
	for i := range n {
		from.send(t, i)
		if i%16 == 15 {
			take(1)
		}
	}
	take(settled)
	return got
}
