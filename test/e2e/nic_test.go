// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// nicPair is the two NICs of a virtual machine, a daemon on one of them.
type nicPair struct {
	*loaded
	nic   *testnet.NICs
	mtu   int
	extra []string // flags of every client
}

func newNICPair(t *testing.T) *nicPair {
	t.Helper()
	nic := testnet.Borrowed(t)
	if nic == nil {
		t.Skip("needs a virtual machine with two NICs: make test-nic")
	}
	p := &nicPair{nic: nic, loaded: &loaded{t: t, net: testnet.NewPair(t, testnet.Options{Queues: nic.Queues}), file: filepath.Join(t.TempDir(), "memory")}}
	p.flags = []string{"--region", "r=4KiB:key=0x11,backing=" + p.file, "--region", "other=64KiB:key=0x22"}
	switch nic.XDP {
	case "generic":
		p.extra = []string{"--xdp", "any"}
	case testnet.Refused:
		p.extra = []string{"--xdp", "generic"}
	}
	p.flags = append(p.flags, p.extra...)
	p.node = serve(t, p.net.B, p.flags...)
	s, err := p.ask()
	if err != nil {
		t.Fatal(err)
	}
	p.mtu = s.Interface.MTU
	return p
}

// What a daemon does on a NIC, from its start on: it gets the modes that the driver has,
// every sum is exact over each encapsulation, the kernel keeps its traffic whatever its
// length, a daemon that is killed comes back, and a link that goes away costs time alone.
func TestNIC(t *testing.T) {
	p := newNICPair(t)
	if p.nic.XDP == testnet.Refused {
		t.Run("refused", p.refused)
	} else {
		t.Run("modes", p.modes)
	}
	switch {
	case p.mtu > 1500:
		t.Run("jumbo", p.jumbo)
		t.Run("narrow", p.narrow)
	case p.nic.XDP == "native" && p.nic.Copy == "copy":
		t.Run("copies", p.copies)
	}
	t.Run("frames", p.frames)
	t.Run("sums", p.sums)
	t.Run("flap", p.flap)
	t.Run("kill", p.killed)
	t.Run("busy", p.busyPoll)
	if p.nic.Queues > 1 {
		t.Run("queues", p.queues)
		t.Run("steer", p.steer)
	}
	p.end()
}

func (p *nicPair) modes(t *testing.T) {
	s, err := p.ask()
	if err != nil {
		t.Fatal(err)
	}
	if i := s.Interface; i.XDP != p.nic.XDP || i.Copy != p.nic.Copy {
		t.Errorf("driver %s: %s XDP, %s; want %s XDP, %s", i.Driver, i.XDP, i.Copy, p.nic.XDP, p.nic.Copy)
	}
	// Attaching took the carrier away: the daemon began to serve when it was back.
	if log := p.err.String(); strings.Contains(log, "is down") {
		t.Errorf("the daemon serves an interface without a carrier: %s", log)
	}
	checkProbe(t, p.net.A, nil)
	checkProbe(t, p.net.B, p.node)
}

// frames sends the kernel's traffic past the daemon. A packet buffer that the driver
// takes for shorter than it is cuts frames off from a certain length on: igb's from 1025
// bytes on, in buffers of 2 KiB.
func (p *nicPair) frames(t *testing.T) {
	const headers = 14 + 20 + 8 // Ethernet, IPv4, UDP or ICMP
	udpEchoOf(t, p.net, p.net.B.IP4, 1, 1024-headers, 1025-headers, 1400, 1514-headers)
	tcpEcho(t, p.net, p.net.B.IP4)
	for _, size := range []int{983, 1400, p.mtu - (headers - 14)} {
		var out []byte
		err := p.net.A.Do(func() (err error) {
			out, err = exec.Command("ping", "-c", "3", "-W", "60", "-s", strconv.Itoa(size), p.net.B.IP4.String()).CombinedOutput()
			return err
		})
		if err != nil {
			t.Errorf("ping -s %d while the daemon runs: %v: %s", size, err, out)
		}
	}
}

// sums adds over each encapsulation, by a program and by the bench, which verifies its
// own.
func (p *nicPair) sums(t *testing.T) {
	for _, addr := range []string{p.net.B.MAC.String(), p.net.B.IP4.String()} {
		p.sum(t, addr, 5000)
		p.bench(t, addr)
	}
}

// sum adds one so many times.
func (p *nicPair) sum(t *testing.T, addr string, count uint64) {
	t.Helper()
	before := word(t, p.file)
	a := p.adder(t, "-peer", addr, "-count", strconv.FormatUint(count, 10))
	if got := fates(a); got.Added != count {
		t.Errorf("%s: account %+v: want all %d added", addr, got, count)
	}
	if now := word(t, p.file); now-before != count {
		t.Errorf("%s: the memory grew by %d, want %d", addr, now-before, count)
	}
}

// bench measures so many operations, and not for so long: a path that drops long packets
// may let none pass for seconds.
func (p *nicPair) bench(t *testing.T, addr string, more ...string) {
	t.Helper()
	args := []string{"bench", addr, "-i", p.net.A.IfName, "--region", "other", "--mode", "throughput", "--count", "5000"}
	b := answer[struct {
		Verified bool
		Ops      uint64
	}](t, p.net.A, slices.Concat(args, p.extra, more)...)
	if !b.Verified || b.Ops == 0 {
		t.Errorf("bench over %s: %+v, want operations, and a verified sum", addr, b)
	}
}

// queues checks that frames over UDP arrive on every queue. The source port tells
// sessions apart; a NIC that hashes has to be told to look at it.
func (p *nicPair) queues(t *testing.T) {
	if s, err := p.ask(); err != nil || s.Interface.Queues != p.nic.Queues {
		t.Errorf("%d queues in use, %v; want %d", s.Interface.Queues, err, p.nic.Queues)
	} else if s.Interface.Driver == "igb" {
		p.ethtool(t, "-N", p.net.B.IfName, "rx-flow-hash", "udp4", "sdfn")
	}
	before := p.received(t)
	p.bench(t, p.net.B.IP4.String(), "--endpoints", "16", "--window", "8")
	for queue, n := range p.received(t) {
		if n == before[queue] {
			t.Errorf("queue %s received nothing", queue)
		}
	}
}

// perQueue matches a queue's count of packets in what `ethtool -S` prints: igb's
// rx_queue_1_packets, virtio-net's rx1_xdp_packets.
var perQueue = regexp.MustCompile(`(?m)^\s*rx_?(?:queue_)?(\d+)_(?:xdp_)?packets: (\d+)`)

// received is how many packets each of the daemon's queues has received.
func (p *nicPair) received(t *testing.T) map[string]string {
	t.Helper()
	counts := map[string]string{}
	for _, m := range perQueue.FindAllStringSubmatch(p.ethtool(t, "-S", p.net.B.IfName), -1) {
		counts[m[1]] = m[2]
	}
	if len(counts) < p.nic.Queues {
		t.Fatalf("counts of %d queues: %v", p.nic.Queues, counts)
	}
	return counts
}

func (p *nicPair) ethtool(t *testing.T, args ...string) (said string) {
	t.Helper()
	err := p.net.B.Do(func() error {
		out, err := exec.Command("ethtool", args...).CombinedOutput()
		said = string(out)
		return err
	})
	if err != nil {
		t.Fatalf("ethtool %q: %v: %s", args, err, said)
	}
	return said
}

func (p *nicPair) adder(t *testing.T, args ...string) *process {
	t.Helper()
	switch p.nic.XDP {
	case "generic":
		args = append(args, "-xdp", "any")
	case testnet.Refused:
		args = append(args, "-xdp", "generic")
	}
	return startAdder(t, p.net.A, p.node, append([]string{"-region", "r"}, args...)...)
}

// flap takes the link of either side away for a while, with operations in flight. They
// wait, and each runs once.
func (p *nicPair) flap(t *testing.T) {
	before := word(t, p.file)
	a := p.adder(t)
	p.grows(t, a)
	for _, side := range []*testnet.Side{p.net.B, p.net.A} {
		setUp(t, side, false)
		time.Sleep(time.Second) // longer than the first retransmissions wait
		setUp(t, side, true)
		p.grows(t, a)
	}
	a.signal(enough)
	got := fates(a)
	if grown := word(t, p.file) - before; got.Added != got.Posted || grown != got.Added {
		t.Errorf("account %+v, the memory grew by %d: want every operation to have run once", got, grown)
	}
}

// grows waits until an adder has added some more.
func (p *nicPair) grows(t *testing.T, a *process) {
	t.Helper()
	from := word(t, p.file)
	a.eventually("adding more", func() bool { return word(t, p.file) > from+1000 })
}

// setUp sets an interface up or down. A NIC loses its carrier, as if the cable had been
// pulled.
func setUp(t *testing.T, side *testnet.Side, up bool) {
	t.Helper()
	h, err := netlink.NewHandleAt(side.NS, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := h.LinkByIndex(side.IfIndex)
	if err != nil {
		t.Fatal(err)
	}
	set := h.LinkSetDown
	if up {
		set = h.LinkSetUp
	}
	if err := set(l); err != nil {
		t.Fatal(err)
	}
}

// killed kills the daemon under load, twice: the driver has to give the queues back.
func (p *nicPair) killed(t *testing.T) {
	for range 2 { // the second time, of a daemon that was begun on a NIC left behind
		before := word(t, p.file)
		a := p.adder(t, "-timeout", silence.String())
		p.grows(t, a)
		p.kill()
		p.restart()
		got := fates(a)
		sum := word(t, p.file) - before
		if sum < got.Added || sum > got.Added+got.Unknown+got.Restarted || got.Added == 0 || !strings.Contains(got.First, "peer restarted") {
			t.Errorf("account %+v, the memory grew by %d: want to be told that the peer restarted, and at least %d", got, sum, got.Added)
		}
	}
	p.sum(t, p.addr(), 1000)
}
