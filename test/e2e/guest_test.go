// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Many clients use one interface at once, on a node whose daemon serves it too.
func TestManyClients(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "r=4KiB", "--region", "other=4KiB")
	h := host(t, net.A, "--region", "here=4KiB")
	var clients []*process
	for _, args := range []string{
		"ping PEER -c 2000", "list PEER", "atomic sum uint64 1 --peer PEER --region r", "atomic sum uint64 1 --peer PEER --region r",
		"bench PEER --region other --mode throughput --duration 1s", "ping SELF -c 200", "atomic sum uint64 7 --peer SELF --region here",
	} {
		args = strings.NewReplacer("PEER", d.addr(), "SELF", h.addr()).Replace(args)
		clients = append(clients, start(t, net.A, xdpfabPath, append(strings.Fields(args), "-i", net.A.IfName)))
	}
	for _, c := range clients {
		c.wants(0)
	}
	got := answer[atomicReport](t, net.A, "atomic", "read", "uint64", "-i", net.A.IfName, "--peer", d.addr(), "--region", "r")
	if !slices.Equal(got.Before, []string{"2"}) {
		t.Errorf("sum %v, want 2", got.Before)
	}
	xdpfab(t, net.A, []string{"ping", d.addr(), "-i", net.A.IfName, "--direct"}).
		wants(5, fmt.Sprintf("xdpfabd, process %d, serves %s at %s: leave out --direct", h.cmd.Process.Pid, net.A.IfName, h.socket))
	xdpfab(t, net.A, []string{"ping", d.addr(), "-i", net.A.IfName, "--control", h.socket + "x"}).wants(4, "no daemon serves the interface")
	xdpfab(t, net.A, []string{"ping", d.addr(), "-i", net.A.IfName, "--queues", "1"}).wants(2, "--queues is for the process that has the interface")
	if text := xdpfab(t, net.A, []string{"info", net.A.IfName}).out.String(); !strings.Contains(text, fmt.Sprintf("xdpfabd, process %d", h.cmd.Process.Pid)) {
		t.Errorf("info does not name the daemon: %s", text)
	}
}

// All that a program in a container needs is the socket: it is nobody, without a
// capability and unable to get one, in user, process, mount and network namespaces of its
// own, and may make the system calls alone that the usual profile of containers allows.
func TestContainer(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "r=4KiB")
	socket := filepath.Join(folder, socketName) // a folder that nobody can enter
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	inside := func(args string) *process {
		t.Helper()
		const jail = "--reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs unshare --user --pid --mount --net --fork --kill-child"
		words := slices.Concat(strings.Fields(jail), []string{testnet.ThroughSelf, xdpfabPath}, strings.Fields(args), []string{"-i", net.A.IfName, "--control", socket, "--timeout", limit.String()})
		return start(t, nil, "/usr/bin/setpriv", words, testnet.ConfinedBy(self))
	}
	atomic := "atomic sum uint64 5 -q --region r --peer " + d.addr()
	t.Run("allowed", func(t *testing.T) {
		hostAt(t, net.A, socket, "--socket-mode", "0666", "--guest", "allow:user=65534,memory=1MiB")
		for i := range 3 {
			p := inside(atomic)
			if p.code() != 0 && strings.Contains(p.err.String(), "unshare failed") {
				t.Skipf("no user namespaces here: %s", p.err.String())
			}
			if p.wants(0); p.out.String() != fmt.Sprintln(5*i) {
				t.Errorf("found %q, want %d", p.out.String(), 5*i)
			}
		}
		inside("ping -c 10 " + d.addr()).wants(0)
	})
	t.Run("denied", func(t *testing.T) {
		h := hostAt(t, net.A, socket, "--socket-mode", "0666")
		inside(atomic).wants(5, "user 65534", "only root and the daemon's own user may attach", "--guest allow:user=65534")
		xdpfab(t, net.A, []string{"ping", "-c", "1", d.addr(), "-i", net.A.IfName}).wants(0) // root is
		if !strings.Contains(h.err.String(), "guest refused") {
			t.Errorf("log: %s", h.err.String())
		}
	})
	t.Run("no access to the socket", func(t *testing.T) {
		hostAt(t, net.A, socket, "--guest", "allow")
		inside(atomic).wants(5, "permission denied", "may write to the socket")
		xdpfab(t, net.A, []string{"ping", "-c", "1", d.addr(), "-i", net.A.IfName}).wants(0)
	})
}

// Peers operate on a guest's memory while the guest is stopped, until it has ended.
func TestGuestStopped(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "r=4KiB")
	h := host(t, net.A)
	hosts.Store(net.B, d)
	t.Cleanup(func() { hosts.Delete(net.B) })
	journal := filepath.Join(t.TempDir(), "journal")
	guest := startAdder(t, net.A, d, "-region", "r", "-journal", journal, "-serve", "77")
	guest.eventually("adding", func() bool { return journalOf(journal).added > 0 })
	guest.halt()
	args := []string{"atomic", "sum", "uint64", "1", "-q", "-i", net.B.IfName, "--peer", h.addr() + "/77", "--region", "own"}
	for i := range 3 {
		if p := xdpfab(t, net.B, args); p.code() != 0 || p.out.String() != fmt.Sprintln(i) {
			t.Errorf("%d: code %d, %q, %q", i, p.code(), p.out.String(), p.err.String())
		}
	}
	guest.signal(unix.SIGKILL)
	<-guest.done
	h.eventually("the guest gone", func() bool {
		s, err := h.ask()
		return err == nil && len(s.Guests) == 0
	})
	xdpfab(t, net.B, args).wants(1, "it has no such endpoint")
}

// A guest whose daemon was killed goes on with the next one, and knows what it does not
// know of the operations that were in flight.
func TestHostRestarted(t *testing.T) {
	testnet.Require(t)
	net, file := testnet.NewPair(t, testnet.Options{}), filepath.Join(t.TempDir(), "memory")
	d := serve(t, net.B, "--region", "r=4KiB:backing="+file)
	h := host(t, net.A)
	adder := startAdder(t, net.A, d, "-region", "r", "-later", "100")
	adder.eventually("adding", func() bool { return d.counters()["ops_executed"] > 20_000 })
	h.kill()
	next := again(t, net.A, h.socket, "--give-up", silence.String())
	a := fates(adder)
	if sum := word(t, file); sum < a.Added || sum > a.Added+a.Unknown || a.Later < 100 || !strings.Contains(a.First, "daemon that has the interface has ended") {
		t.Errorf("the memory holds %d; account %+v", sum, a)
	}
	next.end()
}

// A guest whose daemon was killed is told so.
func TestHostKilled(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "r=4KiB")
	h := host(t, net.A)
	bench := start(t, net.A, xdpfabPath, []string{"bench", d.addr(), "-i", net.A.IfName, "--region", "r", "--mode", "throughput", "--duration", "1h"})
	bench.eventually("at work", func() bool { return d.counters()["ops_executed"] > 20_000 })
	h.kill()
	if code, text := bench.code(), bench.err.String(); code != 3 && code != 4 || !strings.Contains(text, "daemon that has the interface has ended") {
		t.Errorf("code %d, %s", code, text)
	}
}

// A command that has no unknown outcome says of a daemon that ended that none answers.
func TestHostKilledWhileReading(t *testing.T) {
	testnet.Require(t)
	t.Parallel()
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "r=4KiB")
	h := host(t, net.A)
	var waiting []*process
	for _, line := range []string{"watch P --region r", "watch P", "ping P -c 0", "receive --wait " + silence.String()} {
		args := append(strings.Fields(strings.ReplaceAll(line, "P", d.addr())), "-i", net.A.IfName)
		p := start(t, net.A, xdpfabPath, args)
		p.eventually("at work", func() bool { return p.out.String() != "" || strings.Contains(p.err.String(), "Ctrl-C ends") })
		waiting = append(waiting, p)
	}
	h.kill()
	for _, p := range waiting {
		p.wants(4, "ended: start ")
	}
}

// A command that waits for messages through a daemon says that this was killed, and that
// it has got another one: nothing else would tell.
func TestReceiversDaemonKilled(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	h := host(t, net.A)
	var waiting []*process
	for _, line := range []string{"receive --count 1", "bench serve"} {
		p := start(t, net.A, xdpfabPath, append(strings.Fields(line), "-i", net.A.IfName))
		p.eventually("waiting", func() bool { return strings.Contains(p.out.String()+p.err.String(), "ing at ") })
		waiting = append(waiting, p)
	}
	h.kill()
	says := func(what string) {
		for _, p := range waiting {
			p.eventually("told", func() bool { return strings.Contains(p.err.String(), net.A.IfName+": "+what) })
		}
	}
	says("daemon that has the interface has ended; start it again: operations fail until there is one")
	again(t, net.A, h.socket)
	says("attached to another daemon; operations go on")
	xdpfab(t, net.B, []string{"send", h.addr(), "hello", "-i", net.B.IfName}).wants(0)
	waiting[0].wants(0)
	for _, p := range waiting {
		if n := strings.Count(p.err.String(), "has ended"); n != 1 {
			t.Errorf("%s has said %d times that its daemon has ended: %s", p.name, n, p.err.String())
		}
	}
}
