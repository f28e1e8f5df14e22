// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

func monitor(t testing.TB, side *testnet.Side) (m *Monitor) {
	t.Helper()
	r := resolver(t, side)
	err := side.Do(func() (err error) {
		m, err = r.Monitor()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// await reads changes until one is wanted.
func await(t testing.TB, m *Monitor, what string, wanted func(Change) bool) {
	t.Helper()
	watchdog := time.AfterFunc(time.Minute, m.Close)
	defer watchdog.Stop()
	for {
		c, err := m.Next()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if wanted(c) {
			return
		}
	}
}

func TestMonitor(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	m := monitor(t, p.A)
	for _, c := range []struct {
		command string
		wanted  func(Change) bool
	}{
		{"link set veth0 mtu 1600", func(c Change) bool { return c.Link && c.Routes }},
		{"addr add 10.88.0.1/24 dev veth0", func(c Change) bool { return c.Addrs && c.Routes }},
		{"addr add fd00:88::1/64 dev veth0 nodad", func(c Change) bool { return c.Addrs }},
		{"route add 10.99.0.0/16 via 10.77.0.2", func(c Change) bool { return c.Routes && !c.Addrs }},
		{"rule add to 10.98.0.0/16 lookup 7", func(c Change) bool { return c.Routes && !c.Addrs }},
		{"nexthop add id 7 via 10.77.0.2 dev veth0", func(c Change) bool { return c.Routes && !c.Addrs }},
		{"neigh add 10.77.0.7 lladdr 02:00:00:00:00:07 dev veth0", func(c Change) bool {
			return c.Valid[addr("10.77.0.7")] == wire.MAC{2, 0, 0, 0, 0, 7}
		}},
		// As a neighbour leaves its entry that asks for this node.
		{"neigh replace 10.77.0.7 lladdr 02:00:00:00:00:08 dev veth0 nud stale", func(c Change) bool {
			return c.Valid[addr("10.77.0.7")] == wire.MAC{2, 0, 0, 0, 0, 8}
		}},
		{"link set veth0 down", func(c Change) bool { return c.Link }},
		{"link del veth0", func(c Change) bool { return c.Link }},
	} {
		testnet.IP(t, p.A, c.command)
		await(t, m, c.command, c.wanted)
	}
}

// Messages about other interfaces are no change, apart from routes.
func TestMonitorIgnoresOthers(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	testnet.IP(t, p.A, "link add br7 type bridge", "link set br7 up", "addr add 10.66.0.1/24 dev br7",
		// The kernel gives veth0 an address of its own when it is up, maybe now.
		"link set veth0 addrgenmode none", "addr flush dev veth0 scope link")
	m := monitor(t, p.A)
	testnet.IP(t, p.A, "link set br7 mtu 1400", "addr add 10.66.0.2/24 dev br7",
		"neigh add 10.66.0.7 lladdr 02:00:00:00:00:07 dev br7", "neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev veth0")
	await(t, m, "the neighbour", func(c Change) bool {
		if c.Link || c.Addrs || c.Neighbours || c.Valid[addr("10.66.0.7")] != (wire.MAC{}) {
			t.Errorf("%+v", c)
		}
		return c.Valid[addr("10.77.0.9")] != (wire.MAC{})
	})
}

// When more has happened than the socket can hold, everything may have changed, and
// later changes are told again.
func TestMonitorOverflow(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	m := monitor(t, p.A)
	if err := m.socket.SetReceiveBufferSize(8<<10, true); err != nil { // a few messages
		t.Fatal(err)
	}
	var many []string
	for i := range 64 {
		many = append(many, fmt.Sprintf("neigh replace 10.77.0.%d lladdr 02:00:00:00:00:07 dev veth0", 10+i))
	}
	testnet.IP(t, p.A, many...)
	await(t, m, "the loss", func(c Change) bool { return c.Link && c.Addrs && c.Routes && c.Neighbours })
	_ = m.socket.SetReceiveBufferSize(monitorBuffer, true)
	testnet.IP(t, p.A, "neigh replace 10.77.0.9 lladdr 02:00:00:00:00:09 dev veth0")
	await(t, m, "the neighbour", func(c Change) bool { return c.Valid[addr("10.77.0.9")] != (wire.MAC{}) })
}

func TestMonitorClose(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	m := monitor(t, p.A)
	ended := make(chan error)
	go func() {
		for {
			if _, err := m.Next(); err != nil {
				ended <- err
				return
			}
		}
	}()
	m.Close()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := m.Next(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	m.Close()
}

// Ask makes the kernel look again for a neighbour that it is certain of, and does not
// touch permanent entries.
func TestAsk(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	r, m := resolver(t, p.A), monitor(t, p.A)
	resolve(t, r, p.B.IP4.String())
	moved := wire.MAC{2, 0, 0, 0, 0, 0x22}
	testnet.IP(t, p.B, "link set veth0 address 02:00:00:00:00:22")
	if err := r.Ask(p.B.IP4); err != nil {
		t.Fatal(err)
	}
	await(t, m, "the answer", func(c Change) bool { return c.Valid[p.B.IP4] == moved })
	testnet.IP(t, p.A, "neigh replace 10.77.0.2 lladdr 02:00:00:00:00:33 dev veth0")
	if err := r.Ask(p.B.IP4); err != nil {
		t.Fatal(err)
	}
	known, err := r.Neighbours()
	if err != nil || known[p.B.IP4] != (wire.MAC{2, 0, 0, 0, 0, 0x33}) {
		t.Errorf("%v, %v", known, err)
	}
}
