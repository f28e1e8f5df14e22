// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// testType is an EtherType for local experiments (IEEE 802).
const testType = 0x88b6

// The first frame that either side writes arrives, however soon it is written.
func TestFirstFrameArrives(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates network namespaces")
	}
	for range 10 {
		p, err := prepare(Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		// The sockets are opened in advance, since opening takes so long that the
		// link would be running by then.
		a, b := rawSocket(t, p.A), rawSocket(t, p.B)
		defer unix.Close(a)
		defer unix.Close(b)
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
		for _, way := range [][2]int{{a, b}, {b, a}} {
			if _, err := unix.Write(way[0], broadcast); err != nil {
				t.Fatal(err)
			}
			if !readable(t, way[1]) {
				t.Fatalf("the first frame of socket %d was lost", way[0])
			}
		}
	}
}

// broadcast is a frame of testType to all nodes, from the first locally
// administered address.
var broadcast = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0, testType >> 8, testType & 0xff}

// readable waits until there is something to read.
func readable(t *testing.T, fd int) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(runningLimit.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
}

// rawSocket is a packet socket on the side's interface, up or not, which sees frames
// of testType.
func rawSocket(t *testing.T, s *Side) (fd int) {
	t.Helper()
	const proto = testType>>8 | testType&0xff<<8
	err := s.Do(func() error {
		link, err := net.InterfaceByName(IfName)
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: link.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
	// A socket on an interface that is down has a pending error; this call takes
	// it.
	_, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	return fd
}

// Every link runs when the constructor returns: those of the sides, of the router,
// the ports of the switch and the switch itself, and a VLAN on top.
func TestEverythingRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates network namespaces")
	}
	rounds := 5
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		p, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		allRun(t, p.A, p.B)
		if err := errors.Join(p.A.Tag(77), p.B.Tag(77)); errors.Is(err, ErrNoVLAN) {
			t.Log(err)
		} else if err != nil {
			t.Fatal(err)
		} else {
			allRun(t, p.A, p.B)
		}
		s, err := NewStar(3, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		allRun(t, append(s.Sides, s.hub)...)
		r, err := NewRouted(Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		allRun(t, r.A, r.B, r.router)
	}
}

func allRun(t *testing.T, sides ...*Side) {
	t.Helper()
	for _, s := range sides {
		h, err := netlink.NewHandleAt(s.NS, unix.NETLINK_ROUTE)
		if err != nil {
			t.Fatal(err)
		}
		idle, err := notRunning(h)
		h.Close()
		if err != nil {
			t.Fatal(err)
		}
		if idle != nil {
			t.Errorf("%s: %s does not run yet", s.Name, idle.Name)
		}
	}
}

// A link without a carrier is found not to be running.
func TestIdleLinkIsSeen(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates network namespaces")
	}
	p, err := prepare(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.A.configure(); err != nil { // alone
		t.Fatal(err)
	}
	h, err := netlink.NewHandleAt(p.A.NS, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if idle, err := notRunning(h); idle == nil || idle.Name != IfName || err != nil {
		t.Errorf("%+v, %v: want %s", idle, err, IfName)
	}
}

// A veth whose state is unknown does not run, whatever its flags say; loopback's stays
// unknown.
func TestUnknownVethDoesNotRun(t *testing.T) {
	const up, running = unix.IFF_UP, unix.IFF_UP | unix.IFF_RUNNING
	for _, c := range []struct {
		link  netlink.Link
		state netlink.LinkOperState
		flags uint32
		want  bool
	}{
		{&netlink.Veth{}, netlink.OperUnknown, running, false},
		{&netlink.Veth{}, netlink.OperUp, running, true},
		{&netlink.Veth{}, netlink.OperLowerLayerDown, up, false},
		{&netlink.Device{}, netlink.OperUnknown, running, true},
	} {
		c.link.Attrs().OperState, c.link.Attrs().RawFlags = c.state, c.flags
		if got := runs(c.link); got != c.want {
			t.Errorf("%s, state %v, flags %#x: runs: %v, want %v", c.link.Type(), c.state, c.flags, got, c.want)
		}
	}
}
