// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// residentDeathsEnv, an environment variable, is how many daemons TestResidentDeaths
// kills.
const residentDeathsEnv = "XDPFAB_RESIDENT_DEATHS"

func residentDeaths(t *testing.T) int {
	text := os.Getenv(residentDeathsEnv)
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: want a number, 1 or more", residentDeathsEnv, text)
	}
	return n
}

// crash kills the daemon, and waits for its end. What is resident goes on.
func (n *node) crash() {
	n.t.Helper()
	n.signal(unix.SIGKILL)
	n.code()
}

// programOf returns the id of the XDP program of a side's interface, 0 for none.
func programOf(t *testing.T, side *testnet.Side) uint32 {
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
	if x := l.Attrs().Xdp; x != nil && x.Attached {
		return x.ProgId
	}
	return 0
}

// pinned starts a daemon that keeps its resident region in a folder.
func pinned(t *testing.T, side *testnet.Side) (d *node, folder string, flags []string) {
	t.Helper()
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18")
	}
	folder = filepath.Join(testnet.BPFFS(t), "xdpfab", "node")
	flags = []string{"--pin", folder, "--region", "hot=4KiB:resident", "--region", "r=4KiB"}
	return serve(t, side, flags...), folder, flags
}

// sumOf reads the first word of a region.
func sumOf(t *testing.T, side *testnet.Side, d *node, region string) uint64 {
	t.Helper()
	p := xdpfab(t, side, []string{"atomic", "sum", "uint64", "0", "-q", "-i", side.IfName, "--peer", d.addr(), "--region", region})
	if code := p.code(); code != 0 {
		t.Fatalf("reading %s: code %d, %s", region, code, p.err.String())
	}
	n, err := strconv.ParseUint(strings.TrimSpace(p.out.String()), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Daemons are killed under load, again and again. While there is none, the kernel goes
// on; the next one takes session and memory back and updates the program in place. The
// client sees nothing of it: every operation succeeds, once. A daemon that ends in order
// leaves nothing.
func TestResidentDeaths(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	d, folder, flags := pinned(t, net.B)
	// With a window of 16 every answer fits: see docs/resident.md, Limits.
	journal := filepath.Join(t.TempDir(), "journal")
	adder := startAdder(t, net.A, d, "-region", "hot", "-window", "16", "-journal", journal)
	added := func() uint64 { return journalOf(journal).added }
	more := func(when string) {
		t.Helper()
		const several = 500 // more than are in flight, by far
		base := added()
		adder.eventually(when, func() bool { return added() > base+several })
	}
	rounds := residentDeaths(t)
	for range rounds {
		more("adding")
		d.crash()
		before := programOf(t, net.B)
		more("adding while there is no daemon")
		d = again(t, net.B, d.socket, flags...)
		if now := programOf(t, net.B); before == 0 || now == 0 || now == before {
			t.Fatalf("program %d, and %d before: want another one in its place", now, before)
		}
	}
	more("adding in the end")
	adder.signal(enough)
	a := fates(adder)
	if a.Added != a.Posted || a.Added == 0 || a.NotExecuted+a.Unknown+a.Restarted != 0 {
		t.Errorf("account %+v: want every operation to have succeeded", a)
	}
	if sum := sumOf(t, net.A, d, "hot"); sum != a.Added {
		t.Errorf("%d deaths: the memory holds %d, want %d", rounds, sum, a.Added)
	}
	if sum := sumOf(t, net.A, d, "r"); sum != 0 {
		t.Errorf("the ordinary region holds %d, want it new", sum)
	}
	d.end()
	if _, err := os.Lstat(folder); !d.cutShort() && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", folder, err)
	}
	t.Logf("%d daemons killed, %d operations", rounds, a.Added)
}

// What a dead daemon has left is shown and removed. What is damaged, or of another
// version, is refused, and the error says how to get rid of it.
func TestResidentLeft(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	d, folder, flags := pinned(t, net.B)
	root := filepath.Dir(folder)
	list := func(want string) {
		t.Helper()
		p := xdpfab(t, net.B, []string{"resident", "list", root})
		if code := p.code(); code != 0 || !strings.Contains(p.out.String(), want) {
			t.Errorf("code %d, %s%s; want %q", code, p.out.String(), p.err.String(), want)
		}
	}
	refused := func(flags []string, want ...string) {
		t.Helper()
		n := launch(t, net.B, d.socket, flags...)
		code := n.code()
		for _, w := range want {
			if code != 5 || !strings.Contains(n.err.String(), w) {
				t.Errorf("code %d, %s; want %q", code, n.err.String(), w)
			}
		}
	}
	remove := []string{"resident", "remove", folder}
	list("in use")
	xdpfab(t, net.B, remove).wants(1, fmt.Sprintf("process %d (xdpfabd) has the folder", d.cmd.Process.Pid))
	d.crash()
	list("left")
	list("hot")
	refused([]string{"--region", "r=4KiB"}, "xdpfab resident remove")
	n := launch(t, net.B, d.socket, append(flags, "--queues", "64")...)
	if code := n.code(); code != 5 || !strings.Contains(n.err.String(), "no such queue") || strings.Contains(n.err.String(), "remove") {
		t.Errorf("code %d, %s; want nothing to be removed for too many queues", code, n.err.String())
	}
	answers, _ := filepath.Glob(filepath.Join(folder, "v*", "answers"))
	if len(answers) != 1 {
		t.Fatalf("%v: want one map of answers", answers)
	}
	if err := os.Remove(answers[0]); err != nil {
		t.Fatal(err)
	}
	refused(flags, "cannot be taken back", "xdpfab resident remove "+folder)
	if err := os.Mkdir(filepath.Join(folder, "v999"), 0o700); err != nil {
		t.Fatal(err)
	}
	refused(flags, "another version", "xdpfab resident remove")
	xdpfab(t, net.B, remove).wants(0)
	testnet.Eventually(t, "no XDP program on the interface", func() bool { return programOf(t, net.B) == 0 })
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", folder, err)
	}
	d = again(t, net.B, d.socket, append(flags, "--leave")...)
	d.signal(unix.SIGTERM)
	d.wants(0)
	if id := programOf(t, net.B); id == 0 && !d.cutShort() {
		t.Error("--leave leaves no program")
	}
	list("hot")
	refused([]string{"--pin", t.TempDir(), "--region", "hot=4KiB:resident"}, "mount -t bpf")
	xdpfab(t, net.B, remove).wants(0)
}

// Every command that meets what a dead daemon has left names its folder, and the command
// that removes it. The BPF file system is one of the commands' own.
func TestResidentLeftMet(t *testing.T) {
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18")
	}
	net := testnet.NewPair(t, testnet.Options{})
	socket, pin := filepath.Join(t.TempDir(), socketName), filepath.Join(t.TempDir(), "node")
	const script = `mount -t bpf bpf "${3%/node}" || exit 1
		setpriv --pdeathsig KILL "$0" --interface "$2" --control "$4" --pin "$3" --region hot=4KiB:resident 2>/dev/null &
		until "$1" stat --control "$4"; do sleep 0.1; kill -0 $! || exit 1; done >/dev/null 2>&1
		{ kill -KILL $!; wait $!; } 2>/dev/null
		xdpfab="$1"; shift 4
		for line; do "$xdpfab" $line 2>&1; echo "exit code $?"; done`
	daemon := "--control " + socket + "x --interface " + net.B.IfName + " --region r=4KiB"
	lines := []string{"stat --control " + socket, "info " + net.B.IfName, "diagnose 10.77.0.1",
		"list 10.77.0.1 -i " + net.B.IfName, "list 10.77.0.1 --transport udp -i " + net.B.IfName,
		"doctor " + net.B.IfName}
	codes := []string{"4", "0", "5", "5", "5", "5"}
	p := start(t, net.B, "unshare", slices.Concat([]string{"-m", "sh", "-c",
		script + `; "${xdpfab}d" ` + daemon + ` 2>&1; echo "exit code $?"`, xdpfabdPath, xdpfabPath, net.B.IfName, pin, socket}, lines))
	p.wants(0)
	all := strings.Split(p.out.String(), "exit code ")
	lines, codes = append(lines, "xdpfabd "+daemon), append(codes, "5")
	if len(all) != len(lines)+1 {
		t.Fatalf("%d outputs: %s", len(all)-1, p.out.String())
	}
	end := "`xdpfab resident remove " + pin + "`"
	for i, line := range lines {
		if flat := strings.Join(strings.Fields(all[i]), " "); !strings.Contains(flat, end) || !strings.HasPrefix(all[i+1], codes[i]) {
			t.Errorf("%s: %s, exit code %.1s: want %s, and %s", line, all[i], all[i+1], codes[i], end)
		}
	}
}
