// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Daemons take over from one another beside resident regions under load, kept in a folder
// or not; one that cannot leaves the former one as it was. No operation fails or is done
// twice, and the last daemon leaves nothing.
func TestTakeoverResident(t *testing.T) {
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18")
	}
	for _, kept := range []bool{true, false} {
		t.Run(map[bool]string{true: "kept", false: "not kept"}[kept], func(t *testing.T) { takeOverResident(t, kept) })
	}
}

func takeOverResident(t *testing.T, kept bool) {
	net, folder, lacks := testnet.NewPair(t, testnet.Options{}), "none", "CAP_"
	if kept {
		folder = filepath.Join(testnet.BPFFS(t), "xdpfab", "node")
		lacks = "permission denied" // the folder is another process's, until it has the privilege
	}
	flags := []string{"--pin", folder, "--give-up", silence.String(), "--region", "hot=4KiB:resident", "--region", "other=1MiB:resident", "--region", "r=4KiB"}
	d := launch(t, net.B, filepath.Join(t.TempDir(), socketName), flags...)
	d.ready()
	host(t, net.A)
	regions, adders, progress := []string{"hot", "other", "r", "hot"}, []*process{}, []func() uint64{}
	for i, region := range regions {
		peer := d.addr()
		if i == 3 {
			peer = net.B.IP4.String()
		}
		p, added := startAdding(t, net.A, d, "-region", region, "-peer", peer)
		adders, progress = append(adders, p), append(progress, added)
	}
	more := func() {
		t.Helper()
		for i, added := range progress {
			was := added()
			adders[i].eventually("adding to "+regions[i], func() bool { return added() > was })
		}
	}
	more()
	refused := func(want, path string, args ...string) {
		t.Helper()
		args = append(append(args, "--takeover", "--interface", net.B.IfName, "--control", d.socket), flags...)
		if want == "--pin is" { // of several the last one counts
			args = append(args, "--pin", "/sys/fs/bpf/elsewhere")
		}
		start(t, net.B, path, args).wants(1, want, "that daemon continues")
		more()
	}
	var before holdings
	for i := range 3 {
		program := programOf(t, net.B)
		next := launch(t, net.B, d.socket, append([]string{"--takeover"}, flags...)...)
		next.ready()
		d.wants(0)
		if now := programOf(t, net.B); program == 0 || now == 0 || now == program {
			t.Fatalf("program %d, and %d before: want another one in its place", now, program)
		}
		d = next
		if more(); i == 0 {
			before = d.usual()
		}
		if i == 1 {
			refused("--pin is", xdpfabdPath)
			refused(lacks, "/usr/bin/setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", xdpfabdPath)
			d.eventually("going on", func() bool { return strings.Contains(d.err.String(), "this daemon continues") })
		}
	}
	var now holdings
	d.eventually("holding what the first that took over held", func() bool {
		now = d.holdings()
		return now.fds <= before.fds && now.rings <= before.rings && now.goroutines <= before.goroutines
	})
	sums := map[string]uint64{}
	for i, p := range adders {
		sums[regions[i]] += ended(t, p)
	}
	for region, want := range sums {
		if sum := sumOf(t, net.A, d, region); sum != want {
			t.Errorf("%s holds %d, want %d", region, sum, want)
		}
	}
	d.end()
	if id := programOf(t, net.B); id != 0 && !d.cutShort() {
		t.Errorf("program %d is left", id)
	}
	if _, err := os.Lstat(folder); kept && !d.cutShort() && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", folder, err)
	}
}

// A daemon that has taken over is killed: the next one finds what is resident in the
// folder, as if there had been no takeover.
func TestTakeoverThenDeath(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	d, _, flags := pinned(t, net.B)
	journal := filepath.Join(t.TempDir(), "journal")
	adder := startAdder(t, net.A, d, "-region", "hot", "-window", "16", "-journal", journal) // see TestResidentDeaths
	added := func() uint64 { return journalOf(journal).added }
	more := func(when string) {
		t.Helper()
		const several = 500 // more than are in flight, by far
		base := added()
		adder.eventually(when, func() bool { return added() > base+several })
	}
	for range 2 {
		more("adding")
		next := launch(t, net.B, d.socket, append(flags, "--takeover")...)
		next.ready()
		d.wants(0)
		next.crash()
		more("adding while there is no daemon")
		d = again(t, net.B, d.socket, flags...)
	}
	more("adding in the end")
	adder.signal(enough)
	a := fates(adder)
	if sum := sumOf(t, net.A, d, "hot"); a.Added != a.Posted || a.First != "" || sum != a.Added {
		t.Errorf("account %+v, and the memory holds %d: want every operation to have succeeded, once", a, sum)
	}
}

// A daemon outlives changes of its interface after which no daemon could open that, not
// even this one. Meanwhile it refuses a takeover, and says what to do.
func TestTakeoverUnfit(t *testing.T) {
	testnet.SkipOnNICs(t, "an interface that can be renamed")
	net := testnet.NewPair(t, testnet.Options{})
	d, _, flags := pinned(t, net.B)
	for _, c := range []struct{ change, undo, remedy string }{
		{"link set veth0 down", "link set veth0 up", "ip link set dev veth0 up"},
		{"link set veth0 down\nlink set veth0 name lan0\nlink set lan0 up", "link set lan0 down\nlink set lan0 name veth0\nlink set veth0 up", "name veth0"},
	} {
		testnet.IP(t, net.B, c.change)
		if c.remedy == "name veth0" {
			d.eventually("knowing its name", func() bool { return strings.Contains(d.err.String(), "from=veth0 to=lan0") })
		}
		launch(t, net.B, d.socket, append(flags, "--takeover")...).wants(1, c.remedy, "that daemon continues")
		testnet.IP(t, net.B, c.undo)
		d.ready()
	}
	d.eventually("its name again", func() bool { return strings.Contains(d.err.String(), "from=lan0 to=veth0") })
	next := launch(t, net.B, d.socket, append(flags, "--takeover")...)
	next.ready()
	d.wants(0)
	next.end()
}

// The program of resident regions takes packets in one buffer, or in several. With an MTU
// that wants the other, a takeover is refused, and the daemon goes on.
func TestTakeoverResidentMTU(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	flags := []string{"--region", "hot=4KiB:resident", "--pin", "none"}
	d := serve(t, net.B, flags...)
	raise := exec.Command("ip", "-n", net.B.Name, "link", "set", net.B.IfName, "mtu", "9000")
	if out, err := raise.CombinedOutput(); err != nil && testnet.Borrowed(t) != nil {
		t.Skipf("the driver takes no MTU of 9000 beside a program: %s", out)
	} else if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	args := append([]string{"--takeover", "--interface", net.B.IfName, "--control", d.socket}, flags...)
	start(t, net.B, xdpfabdPath, args).wants(1, "MTU 9000, and 1500 at the start", "that daemon continues")
	testnet.IP(t, net.B, "link set "+net.B.IfName+" mtu 1500")
	next := launch(t, net.B, d.socket, append([]string{"--takeover"}, flags...)...)
	next.ready()
	d.wants(0)
	next.end()
}
