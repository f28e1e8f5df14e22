// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A refusal has the driver's own words, which a bpf_link does not carry, and leaves
// nothing attached. The words are veth's, of Linux 5.10 to 7.2.
func TestRefusalSaysWhy(t *testing.T) {
	inPair(t, testnet.Options{MTU: 9000}, func(pair *testnet.Pair, cfg Config) {
		err := mustLoad(t, cfg, 1).Attach(pair.B.IfIndex, Native)
		var r *Refusal
		if !errors.As(err, &r) || r.Errno != unix.ERANGE || !errors.Is(err, unix.ERANGE) || errors.Is(err, ErrNoNative) {
			t.Fatalf("%#v", err)
		}
		if !strings.Contains(r.Said, "MTU") || !strings.Contains(err.Error(), r.Said) {
			t.Errorf("the driver said %q, the error is %v", r.Said, err)
		}
		wantXDP(t, pair.B.IfIndex, 0, nl.XDP_ATTACHED_NONE)
	})
}

// Fewer queues to receive than the other end sends from is another of veth's refusals.
func TestRefusalOfQueues(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		testnet.IP(t, pair.B, "link add q0 numrxqueues 1 numtxqueues 1 type veth peer name q1 numrxqueues 4 numtxqueues 4",
			"link set q0 up", "link set q1 up")
		q0, err := net.InterfaceByName("q0")
		if err != nil {
			t.Fatal(err)
		}
		err = mustLoad(t, cfg, 1).Attach(q0.Index, Native)
		var r *Refusal
		if !errors.As(err, &r) || r.Errno != unix.ENOSPC || !strings.Contains(r.Said, "queue") {
			t.Fatalf("%v: said %+v", err, r)
		}
		wantXDP(t, q0.Index, 0, nl.XDP_ATTACHED_NONE)
	})
}

// A driver without native XDP is told from one that gives the same errno for a setting.
func TestRefusalWithoutNative(t *testing.T) {
	inPair(t, testnet.Options{}, func(_ *testnet.Pair, cfg Config) {
		var r *Refusal
		if err := mustLoad(t, cfg, 1).Attach(loopback, Native); !errors.As(err, &r) || !r.NoNative || !errors.Is(err, ErrNoNative) {
			t.Errorf("the loopback: %v, %+v", err, r)
		}
	})
	setting := &Refusal{Interface: "eth0", Mode: Native, Errno: unix.EOPNOTSUPP, Said: "XDP: mtu too large"}
	if errors.Is(setting, ErrNoNative) || !errors.Is(setting, unix.EOPNOTSUPP) ||
		!strings.Contains(setting.Error(), `"XDP: mtu too large"`) {
		t.Errorf("a setting: %v", setting)
	}
}

// Where the driver takes the program at the second try, it is gone again at once.
func TestSecondTryIsUndone(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		p := mustLoad(t, cfg, 1)
		if r, err := p.refusal("veth0", pair.B.IfIndex, Native, unix.EINVAL); r != nil || err != nil {
			t.Fatalf("the second try: %v, %v", r, err)
		}
		wantXDP(t, pair.B.IfIndex, 0, nl.XDP_ATTACHED_NONE)
		if err := p.Attach(pair.B.IfIndex, Native); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// A second try that cannot be undone is told, with the command that undoes it. It is
// tried more than once, and what stays passes packets. An answer that says nothing is
// not believed.
func TestSecondTryThatStays(t *testing.T) {
	was := setLinkXDP
	t.Cleanup(func() { setLinkXDP = was })
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		p, tried := mustLoad(t, cfg, 1), 0
		setLinkXDP = func(ifindex, fd, expected int, flags uint32) (string, error) {
			if tried++; tried == trialEnds {
				return was(ifindex, fd, expected, flags)
			}
			return "", unix.EAGAIN
		}
		if r, err := p.refusal("veth0", pair.B.IfIndex, Native, unix.EINVAL); r != nil || err != nil || tried != trialEnds {
			t.Errorf("detached at the last try: %v, %v after %d", r, err, tried)
		}
		wantXDP(t, pair.B.IfIndex, 0, nl.XDP_ATTACHED_NONE)
		tried, setLinkXDP = 0, func(int, int, int, uint32) (string, error) { tried++; return "", nil }
		if r, err := p.refusal("veth0", pair.B.IfIndex, Native, unix.EINVAL); !errors.Is(err, ErrLeftTrial) ||
			tried != trialEnds || !strings.Contains(err.Error(), "`ip link set dev veth0 xdpdrv off`") {
			t.Errorf("%v, %v after %d tries; want that the program is there", r, err, tried)
		}
		b := new(BusyError)
		if err := p.Attach(pair.B.IfIndex, Native); !errors.As(err, &b) || b.Name != trialName || b.LinkID != 0 {
			t.Errorf("afterwards: %v, want the trial in the way", err)
		}
		testnet.IP(t, pair.B, "link set dev "+pair.B.IfName+" xdpdrv off")
		if err := p.Attach(pair.B.IfIndex, Native); err != nil {
			t.Errorf("after the command: %v", err)
		}
	})
}

// A program that somebody puts in the place of a trial, between the look at it and its
// detachment, stays.
func TestTrialEndsAlone(t *testing.T) {
	was := setLinkXDP
	t.Cleanup(func() { setLinkXDP = was })
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		p := mustLoad(t, cfg, 1)
		other, id, err := p.newTrial()
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		tried := 0
		setLinkXDP = func(ifindex, fd, expected int, flags uint32) (string, error) {
			tried++
			if _, err := setXDP(ifindex, other.FD(), 0, netlinkFlags[Native]); err != nil {
				t.Error(err)
			}
			return was(ifindex, fd, expected, flags)
		}
		if r, err := p.refusal("veth0", pair.B.IfIndex, Native, unix.EINVAL); r != nil || err != nil || tried != 1 {
			t.Errorf("%v, %v after %d tries", r, err, tried)
		}
		wantXDP(t, pair.B.IfIndex, id, nl.XDP_ATTACHED_DRV)
		testnet.IP(t, pair.B, "link set dev "+pair.B.IfName+" xdpdrv off")
	})
}

// parseAck reads what the kernel sends, whole or cut.
func TestParseAck(t *testing.T) {
	request := setLink(7, 3, 0, unix.XDP_FLAGS_DRV_MODE)
	ack := func(code int32, flags uint16, said string) []byte {
		b := make([]byte, unix.SizeofNlMsghdr+4)
		binary.NativeEndian.PutUint16(b[4:], unix.NLMSG_ERROR)
		binary.NativeEndian.PutUint16(b[6:], flags)
		binary.NativeEndian.PutUint32(b[unix.SizeofNlMsghdr:], uint32(code))
		if b = append(b, request[:unix.SizeofNlMsghdr]...); flags&unix.NLM_F_CAPPED == 0 {
			b = append(b, request[unix.SizeofNlMsghdr:]...)
		}
		if said != "" {
			b = binary.NativeEndian.AppendUint16(b, uint16(5+len(said)))
			b = binary.NativeEndian.AppendUint16(b, ackMessage)
			b = append(append(b, said...), 0)
		}
		return b
	}
	for _, c := range []struct {
		b    []byte
		said string
		err  error
	}{
		{ack(0, 0, ""), "", nil},
		{ack(-22, unix.NLM_F_ACK_TLVS, "no"), "no", unix.EINVAL},
		{ack(-22, unix.NLM_F_ACK_TLVS|unix.NLM_F_CAPPED, "no"), "no", unix.EINVAL},
		{ack(-22, 0, ""), "", unix.EINVAL},
	} {
		if said, err := parseAck(c.b); said != c.said || !errors.Is(err, c.err) {
			t.Errorf("%x: %q, %v; want %q, %v", c.b, said, err, c.said, c.err)
		}
		for n := range c.b { // nothing of a shorter one is read
			_, _ = parseAck(c.b[:n:n])
		}
	}
}
