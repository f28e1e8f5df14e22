// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	fab "github.com/xdpfab/xdpfab/xdpfab"
)

// startAdding starts an adder that runs until it is asked to end, and returns it and how
// many of its operations are known to have run. It rests between windows: several that do
// not would take the processors from the daemons whose takeover they watch.
func startAdding(t *testing.T, side *testnet.Side, n *node, args ...string) (p *process, added func() uint64) {
	journal := filepath.Join(t.TempDir(), "journal")
	window, rest := "256", "1ms"
	if testing.Short() { // where instructions are translated, an operation may take a quarter of a millisecond
		window, rest = "16", "50ms"
	}
	p = startAdder(t, side, n, append(args, "-window", window, "-rest", rest, "-journal", journal)...)
	return p, func() uint64 {
		n := journalOf(journal).added
		return n
	}
}

// Daemons take over from one another under load of clients, and of a guest that posts and
// serves memory, and that only a further control socket lets in. A program that ended
// has left a region. Every operation runs once and succeeds, and nothing is left over.
func TestTakeover(t *testing.T) {
	testnet.Require(t)
	net, dir := testnet.NewPair(t, testnet.Options{}), t.TempDir()
	file, far := filepath.Join(dir, "file"), filepath.Join(dir, "far")
	h := host(t, net.A, "--region", "far=4KiB:backing="+far)
	box := filepath.Join(dir, "box-"+socketName)
	flags := []string{"--socket", box + ":mode=0600", "--guest", "allow:serve=own,kept=1MiB,socket=" + box, "--guest", "deny", "--give-up", silence.String(), "--region", "anonymous=1MiB", "--region", "shared=4KiB:memfd", "--region", "file=4KiB:backing=" + file}
	d := launch(t, net.B, filepath.Join(dir, socketName), flags...)
	d.ready()
	hosts.Store(net.B, &node{socket: box})
	t.Cleanup(func() { hosts.Delete(net.B) })
	const guest, former = "77", "78"
	startAdder(t, net.B, h, "-region", "far", "-serve", former, "-keep", "-count", "1").wants(0)
	var adders []*process
	var progress []func() uint64
	start := func(side *testnet.Side, to *node, args ...string) {
		p, added := startAdding(t, side, to, args...)
		p.eventually("adding", func() bool { return added() > 0 })
		adders, progress = append(adders, p), append(progress, added)
	}
	start(net.B, h, "-region", "far", "-serve", guest)
	regions := []string{"anonymous", "shared", "file", "own", "own"}
	for i, region := range regions {
		peer := []string{d.addr(), net.B.IP4.String(), d.addr(), d.addr() + "/" + guest, d.addr() + "/" + former}[i]
		start(net.A, d, "-region", region, "-peer", peer)
	}
	var before holdings
	for i := range 4 {
		next := launch(t, net.B, d.socket, append(flags, "--takeover")...)
		next.ready()
		if d.wants(0); !strings.Contains(d.err.String(), "another daemon takes this one's place") {
			t.Fatalf("takeover %d: %s", i, d.err.String())
		}
		d = next
		for j, added := range progress {
			was := added()
			adders[j].eventually("going on", func() bool { return added() > was })
		}
		if i == 1 {
			before = d.usual()
		}
	}
	sums := map[int]uint64{}
	for i := 1; i < len(adders); i++ {
		sums[i] = ended(t, adders[i])
	}
	for i, region := range regions {
		peer := []string{d.addr(), d.addr(), d.addr(), d.addr() + "/" + guest, d.addr() + "/" + former}[i]
		args := []string{"atomic", "read", "uint64", "-i", net.A.IfName, "--peer", peer, "--region", region}
		if got := answer[atomicReport](t, net.A, args...); fmt.Sprint(got.Before) != fmt.Sprint([]uint64{sums[i+1]}) {
			t.Errorf("%s: sum %v, want %d", region, got.Before, sums[i+1])
		}
	}
	var now holdings
	defer func() {
		if t.Failed() {
			t.Logf("the last daemon holds %+v", now)
		}
	}()
	d.eventually(fmt.Sprintf("holding what the third held, %+v", before), func() bool {
		now = d.holdings()
		return now.fds <= before.fds && now.rings <= before.rings && now.goroutines <= before.goroutines
	})
	if sum := ended(t, adders[0]) + 1; word(t, far) != sum { // the former program has added, too
		t.Errorf("the memory that the guest adds to holds %d, want %d", word(t, far), sum)
	}
	if log := d.err.String(); strings.Contains(log, "evicted") {
		t.Errorf("log: %s", log)
	}
	xdpfab(t, net.B, []string{"kept", "remove", "own", "--control", d.socket}).wants(0)
	if d.end(); exists(box) {
		t.Errorf("the last daemon has left %s", box)
	}
}

// A takeover may change the regions: what both daemons name, and what a command has
// added, keeps its contents; the rest is new, or gone.
func TestTakeoverOtherRegions(t *testing.T) {
	testnet.Require(t)
	net, socket := testnet.NewPair(t, testnet.Options{}), filepath.Join(t.TempDir(), socketName)
	d := launch(t, net.B, socket, "--region", "both=4KiB", "--region", "former=4KiB")
	d.ready()
	for _, r := range []string{"late=4KiB:memfd", "later=4KiB"} {
		xdpfab(t, net.B, []string{"region", "create", r, "--control", socket}).wants(0)
	}
	xdpfab(t, net.B, []string{"region", "remove", "later", "--control", socket}).wants(0)
	operate := func(op, value, region string) *process {
		args := []string{"atomic", op, "uint64"}
		if value != "" {
			args = append(args, value)
		}
		return xdpfab(t, net.A, append(args, "-i", net.A.IfName, "--peer", d.addr(), "--region", region))
	}
	for _, region := range []string{"both", "former", "late"} {
		operate("sum", "7", region).wants(0)
	}
	next := launch(t, net.B, socket, "--region", "new=4KiB", "--region", "both=4KiB", "--takeover")
	next.ready()
	d.wants(0)
	const ends = "region ends here: the next daemon does not serve it"
	if told := d.err.String(); strings.Count(told, ends) != 1 || !strings.Contains(told, ends+`" region=former`) {
		t.Errorf("the log tells of other regions that end than former:\n%s", told)
	}
	d = next
	for region, want := range map[string]uint64{"both": 7, "late": 7, "new": 0} {
		args := []string{"atomic", "read", "uint64", "-i", net.A.IfName, "--peer", d.addr(), "--region", region}
		if got := answer[atomicReport](t, net.A, args...); fmt.Sprint(got.Before) != fmt.Sprint([]uint64{want}) {
			t.Errorf("%s: %v, want %d", region, got.Before, want)
		}
	}
	gone(operate("read", "", "former"), "former")
	d.end()
}

// gone wants a command to have failed since the daemon has no region of the name.
func gone(p *process, region string) {
	p.t.Helper()
	p.wants(1, "no memory region of this name", region)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ended asks an adder to end, none of whose operations may have failed, and returns how
// many there were.
func ended(t *testing.T, p *process) uint64 {
	t.Helper()
	p.signal(enough)
	a := fates(p)
	if a.Added != a.Posted || a.First != "" {
		t.Errorf("%s: %+v, want no failure", p.name, a)
	}
	return a.Added
}

// A daemon that cannot take over leaves the one that runs as it was: before that one has
// stopped, since it wants a region of another size, or afterwards, since it may not open
// the interface. No operation fails.
func TestTakeoverFails(t *testing.T) {
	testnet.Require(t)
	net, far := testnet.NewPair(t, testnet.Options{}), filepath.Join(t.TempDir(), "far")
	file := filepath.Join(t.TempDir(), "file")
	d := serve(t, net.B, "--region", "r=4KiB", "--region", "f=4KiB:backing="+file)
	h := host(t, net.A, "--region", "far=4KiB:backing="+far)
	hosts.Store(net.B, d)
	t.Cleanup(func() { hosts.Delete(net.B) })
	to, added := startAdding(t, net.A, d, "-region", "r")
	guest, posted := startAdding(t, net.B, h, "-region", "far")
	goOn := func() {
		t.Helper()
		a, b := added(), posted()
		to.eventually("adding", func() bool { return added() > a })
		guest.eventually("adding", func() bool { return posted() > b })
	}
	goOn()
	flags := []string{"--takeover", "--interface", net.B.IfName, "--control", d.socket, "--region"}
	start(t, net.B, xdpfabdPath, append(flags, "r=8KiB")).wants(1, `region "r"`, "4096", "8192", "that daemon continues")
	start(t, net.B, xdpfabdPath, append(flags, "r=4KiB:key=9")).wants(1, `region "r" has key`, "that daemon continues")
	start(t, net.B, xdpfabdPath, append(flags, "r=4KiB", "--udp=false")).wants(1, "has udp = true, and its sessions over UDP could not go on")
	start(t, net.B, xdpfabdPath, append(flags, "r=4KiB", "--socket", d.socket+"x")).wants(1, "has no further control socket, and the one that is to take its place the further control sockets ")
	if err := os.Rename(file, file+".moved"); err != nil {
		t.Fatal(err)
	}
	start(t, net.B, xdpfabdPath, append(flags, "r=4KiB", "--region", "f=4KiB:backing="+file)).wants(1, `region "f"`,
		"not the file that the daemon serves", "move that one back", "that daemon continues")
	if exists(file) {
		t.Error("a takeover that was refused has made a file")
	}
	goOn()
	jail := []string{"--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", xdpfabdPath}
	var before holdings
	for i := range 3 {
		start(t, net.B, "/usr/bin/setpriv", append(append(jail, flags...), "r=4KiB")).wants(1, "CAP_", "that daemon continues")
		d.eventually("going on", func() bool { return strings.Count(d.err.String(), "this daemon continues") == i+1 })
		if !strings.Contains(d.err.String(), "takeover failed: this daemon goes on serving") {
			t.Error("the error does not say that the daemon goes on")
		}
		goOn()
		d.eventually("telling that the region goes on", func() bool { return strings.Count(d.err.String(), "contents=kept") == 2*(i+1) })
		if i == 0 {
			before = d.usual()
		}
	}
	var now holdings
	d.eventually("holding what it held after the first failure", func() bool {
		now = d.holdings()
		return now.fds <= before.fds && now.goroutines <= before.goroutines
	})
	next := launch(t, net.B, d.socket, "--takeover", "--region", "r=4KiB")
	next.ready()
	d.wants(0)
	goOn()
	sum := ended(t, to)
	if got := answer[atomicReport](t, net.A, "atomic", "read", "uint64", "-i", net.A.IfName, "--peer", d.addr(), "--region", "r"); fmt.Sprint(got.Before) != fmt.Sprint([]uint64{sum}) {
		t.Errorf("sum %v, want %d", got.Before, sum)
	}
	if sum := ended(t, guest); word(t, far) != sum {
		t.Errorf("the memory that the guest adds to holds %d, want %d", word(t, far), sum)
	}
	next.end()
}

// Operations that wait at a daemon end with it, as not executed, and hinder no takeover.
// They never run in the next one, at which others can wait.
func TestTakeoverEndsWaits(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	flags := []string{"--region", "locks=4KiB", "--region", "saved=4KiB"}
	d := launch(t, net.B, filepath.Join(t.TempDir(), socketName), flags...)
	d.ready()
	c := newCook(t, net.A, d)
	if err := c.lock.Store(c.ctx, 1); err != nil {
		t.Fatal(err)
	}
	const waiting = 3
	ends := make(chan error, waiting)
	wait := func(old, new uint64) { ends <- c.lock.WaitCompareAndSwap(c.ctx, old, new) }
	before := d.counters()["ops_executed"]
	for range waiting {
		go wait(0, 7)
	}
	d.eventually("waited at", func() bool { return d.counters()["ops_executed"] >= before+waiting })
	next := launch(t, net.B, d.socket, append(flags, "--takeover")...)
	next.ready()
	d.wants(0)
	for range waiting {
		if err := <-ends; !errors.Is(err, fab.ErrNotExecuted) || c.ctx.Err() != nil {
			t.Errorf("it ended with %v", err)
		}
	}
	if err := c.lock.Store(c.ctx, 0); err != nil {
		t.Fatal(err)
	}
	before = next.counters()["ops_executed"]
	go wait(5, 6)
	next.eventually("waited at", func() bool { return next.counters()["ops_executed"] > before })
	if was, err := c.lock.Swap(c.ctx, 5); was != 0 || err != nil {
		t.Errorf("the word was %d, %v: what had ended has run", was, err)
	}
	if err := <-ends; err != nil {
		t.Error(err)
	}
	if v, err := c.lock.Load(c.ctx); v != 6 || err != nil {
		t.Errorf("the word is %d, %v", v, err)
	}
}
