// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Daemons take over from one another beside a program that drives a queue of theirs,
// posts and serves memory, and beside a resident region. No operation fails, and each
// runs once. The queue is lent again when a daemon that has inherited the loan finds the
// program killed, be it in the middle of the next takeover. Nothing is left over.
func TestTakeoverBorrowed(t *testing.T) {
	testnet.Require(t)
	if _, v := testnet.Kernel(t); !v.AtLeast(kernel.AdoptRings) {
		t.Skip("no queues can be lent")
	}
	net, dir := testnet.NewPair(t, testnet.Options{Queues: 2}), t.TempDir()
	file, far := filepath.Join(dir, "file"), filepath.Join(dir, "far")
	h := host(t, net.A, "--region", "far=4KiB:backing="+far)
	regions := []string{"--region", "file=4KiB:backing=" + file, "--region", "hot=4KiB:resident", "--pin", filepath.Join(testnet.BPFFS(t), "node")}
	flags := []string{"--lend", "1", "--guest", "allow:user=0,queues=1", "--give-up", silence.String()}
	flags = append(flags, regions...)
	d := launch(t, net.B, filepath.Join(dir, socketName), flags...)
	d.ready()
	hosts.Store(net.B, d)
	t.Cleanup(func() { hosts.Delete(net.B) })
	const number = "77"
	begin := func(side *testnet.Side, to *node, args ...string) (*process, func()) {
		p, added := startAdding(t, side, to, args...)
		goesOn := func() {
			t.Helper()
			was := added()
			p.eventually("adding", func() bool { return added() > was })
		}
		goesOn()
		return p, goesOn
	}
	lent := func(state string) {
		t.Helper()
		d.eventually("queue 1 is "+state, func() bool {
			s, err := d.ask()
			return err == nil && len(s.Lent) == 1 && s.Lent[0].Queue == 1 && string(s.Lent[0].State) == state && (s.Lent[0].PID != 0) == (state == "lent")
		})
	}
	next := func(meanwhile func()) {
		t.Helper()
		n := launch(t, net.B, d.socket, append(flags, "--takeover")...)
		meanwhile()
		n.ready()
		d.wants(0)
		d = n
	}
	var before holdings
	var total, hot uint64
	const inOrder, killed, meanwhile = "ends in order", "is killed", "is killed during a takeover"
	rounds := []string{inOrder, killed, meanwhile}
	if testing.Short() {
		rounds = []string{inOrder, meanwhile} // TestBorrow has the other one, without takeovers
	}
	for _, fate := range rounds {
		t.Log("the program", fate) // a round takes minutes where instructions are translated
		borrower, posts := begin(net.B, h, "-region", "far", "-serve", number, "-borrow")
		toBorrower, served := begin(net.A, d, "-region", "own", "-peer", d.addr()+"/"+number)
		toDaemon, daemonServes := begin(net.A, d, "-region", "file", "-peer", net.B.IP4.String())
		toKernel, executed := begin(net.A, d, "-region", "hot")
		lent("lent")
		was := word(t, far)
		for range 2 {
			next(func() {})
			posts()
			served()
			daemonServes()
			executed()
			lent("lent")
		}
		start(t, net.B, xdpfabdPath, append([]string{"--takeover", "--interface", net.B.IfName, "--control", d.socket}, regions...)).
			wants(1, "queue 1 is lent", "0 to lend", "that daemon continues")
		posts()
		sum := ended(t, toBorrower)
		got := answer[atomicReport](t, net.A, "atomic", "read", "uint64", "-i", net.A.IfName, "--peer", d.addr()+"/"+number, "--region", "own")
		if fmt.Sprint(got.Before) != fmt.Sprint([]uint64{sum}) {
			t.Errorf("the borrower's memory holds %v, want %d", got.Before, sum)
		}
		total += ended(t, toDaemon)
		hot += ended(t, toKernel)
		if sum := sumOf(t, net.A, d, "hot"); sum != hot {
			t.Errorf("the resident memory holds %d, want %d", sum, hot)
		}
		switch fate {
		case inOrder:
			if a := ended(t, borrower); word(t, far) != a {
				t.Errorf("the memory that the borrower adds to holds %d, want %d", word(t, far), a)
			}
		case killed:
			borrower.signal(unix.SIGKILL)
			<-borrower.done
		case meanwhile:
			next(func() { borrower.signal(unix.SIGKILL); <-borrower.done })
		}
		if word(t, far) < was {
			t.Errorf("the memory that the borrower adds to went from %d to %d", was, word(t, far))
		}
		lent("free")
		if fate == inOrder {
			next(func() {})
			before = d.usual()
		}
	}
	if word(t, file) != total {
		t.Errorf("the daemon's memory holds %d, want %d", word(t, file), total)
	}
	d.eventually(fmt.Sprintf("no guest, and holding what it held before, %+v", before), func() bool {
		s, err := d.ask()
		now := d.holdings()
		return err == nil && len(s.Guests) == 0 && now.fds <= before.fds && now.rings <= before.rings && now.goroutines <= before.goroutines
	})
}
