// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Nobody, without a capability, and in no network namespace of the interface's, drives a
// queue that the daemon lends. One at a time has it; it is lent again when the program
// was killed, and nothing is left of that.
func TestBorrow(t *testing.T) {
	testnet.Require(t)
	if _, v := testnet.Kernel(t); !v.AtLeast(kernel.AdoptRings) {
		t.Skip("no queues can be lent")
	}
	net := testnet.NewPair(t, testnet.Options{Queues: 2})
	d := serve(t, net.B, "--region", "r=4KiB", "--region", "other=4KiB")
	socket := filepath.Join(folder, socketName) // a folder that nobody can enter
	h := hostAt(t, net.A, socket, "--region", "here=4KiB", "--lend", "1", "--socket-mode", "0666", "--guest", "allow:user=65534,queues=2")
	nobody := func(args string) *process {
		t.Helper()
		const jail = "--reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs"
		args += " --borrow -i " + net.A.IfName + " --control " + socket + " --timeout " + limit.String()
		return start(t, nil, "/usr/bin/setpriv", slices.Concat(strings.Fields(jail), []string{xdpfabPath}, strings.Fields(args)))
	}
	lent := func(state string) {
		t.Helper()
		h.eventually("queue 1 is "+state, func() bool {
			s, err := h.ask()
			return err == nil && len(s.Lent) == 1 && s.Lent[0].Queue == 1 && string(s.Lent[0].State) == state
		})
	}
	empty := func() {
		t.Helper()
		lent("free")
		h.eventually("no guest", func() bool { s, err := h.ask(); return err == nil && len(s.Guests) == 0 })
	}
	hosts.Store(net.B, d)
	t.Cleanup(func() { hosts.Delete(net.B) })
	adds := 0
	add := func() {
		t.Helper()
		p := nobody("atomic sum uint64 5 -q --region r --peer " + d.addr())
		if p.wants(0); p.out.String() != fmt.Sprintln(5*adds) {
			t.Errorf("found %q, want %d", p.out.String(), 5*adds)
		}
		adds++
		empty()
	}
	add()
	h.metrics()
	before := h.usual()
	rounds := 2
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		b := nobody("bench " + d.addr() + " --region other --mode throughput --duration 10m")
		lent("lent")
		executed := d.counters()["ops_executed"]
		d.eventually("executing", func() bool { return d.counters()["ops_executed"] > executed+10_000 })
		nobody("ping "+d.addr()).wants(5, "no queue can be lent now", "of 1 queues to lend, 1 are lent")
		// What others have to do with the daemon goes on.
		xdpfab(t, net.B, []string{"list", h.addr(), "-i", net.B.IfName}).wants(0)
		xdpfab(t, net.A, []string{"ping", d.addr(), "-c", "3", "-i", net.A.IfName, "--control", socket}).wants(0)
		if text := xdpfab(t, net.A, []string{"stat", "--control", socket}).out.String(); !strings.Contains(text, "QUEUE") || !strings.Contains(text, "lent") {
			t.Errorf("stat does not show the queue: %s", text)
		}
		b.signal(unix.SIGKILL)
		<-b.done
		empty()
		add()
	}
	var now holdings
	h.eventually(fmt.Sprintf("holding what it held before, %+v", before), func() bool {
		now = h.holdings()
		return now.fds <= before.fds && now.goroutines <= before.goroutines && now.rings <= before.rings
	})
	// Root may attach without a rule, and borrow nothing.
	xdpfab(t, net.A, []string{"ping", d.addr(), "--borrow", "-i", net.A.IfName, "--control", socket}).wants(5, "lets this program borrow no queue", "queues")
	xdpfab(t, net.A, []string{"ping", d.addr(), "--borrow", "--direct", "-i", net.A.IfName}).wants(2, "--borrow with --direct: want one of them")
}
