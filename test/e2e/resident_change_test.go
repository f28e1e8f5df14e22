// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Resident regions come and go while a daemon serves that began without any, kept in a
// folder or not, and a takeover may change them, too. Meanwhile a peer adds to one of
// them: no operation fails or is done twice, also when a daemon is killed.
func TestResidentRegionsChange(t *testing.T) {
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18")
	}
	for _, kept := range []bool{true, false} {
		t.Run(map[bool]string{true: "kept", false: "not kept"}[kept], func(t *testing.T) { changeResident(t, kept) })
	}
}

// changing is a daemon whose regions change, and a peer that uses them.
type changing struct {
	*node
	t      *testing.T
	net    *testnet.Pair
	flags  []string
	folder string // empty for none
}

func changeResident(t *testing.T, kept bool) {
	c := &changing{t: t, net: testnet.NewPair(t, testnet.Options{})}
	pin := "none"
	if kept {
		c.folder = filepath.Join(testnet.BPFFS(t), "xdpfab", "node")
		pin = c.folder
	}
	c.flags = []string{"--pin", pin, "--region", "r=4KiB"}
	c.node = launch(t, c.net.B, filepath.Join(t.TempDir(), socketName), c.flags...)
	c.ready()
	host(t, c.net.A)
	c.add("r", 0)
	c.pinned(false)
	c.command(0, "create", "hot=4KiB:resident")
	c.pinned(true)
	journal := filepath.Join(t.TempDir(), "journal")
	adder := startAdder(t, c.net.A, c.node, "-region", "hot", "-window", "16", "-journal", journal) // see TestResidentDeaths
	added := func() uint64 { return journalOf(journal).added }
	more := func() {
		t.Helper()
		const several = 500 // more than are in flight, by far
		was := added()
		adder.eventually("adding", func() bool { return added() > was+several })
	}
	more()
	if n := c.counters()["resident_ops_executed"]; n == 0 {
		t.Error("the program has executed nothing")
	}
	for range 2 {
		c.command(0, "create", "late=4KiB:resident")
		c.command(1, "create", "late=4KiB:resident")
		c.add("late", 0)
		c.command(0, "remove", "late")
		c.gone("late")
	}
	c.command(0, "create", "late=8KiB:resident")
	c.add("late", 0)
	more()
	c.takeOver("--region", "new=4KiB:resident")
	more()
	c.add("late", 7)
	c.add("new", 0)
	regions := []string{"--region", "new=4KiB:resident"}
	if kept {
		regions = append(regions, "--region", "hot=4KiB:resident")
		c.crash()
		more()
		for _, other := range []string{"hot=8KiB:resident", "hot=4KiB"} { // the contents would be lost
			start(t, c.net.B, xdpfabdPath, append([]string{"--interface", c.net.B.IfName, "--control", c.socket, "--region", other},
				c.flags...), env("NOTIFY_SOCKET=")).wants(2, `region "hot" has`, "want hot=4KiB:resident", "`xdpfab resident remove ")
		}
		more()
		c.node = again(t, c.net.B, c.socket, append(c.flags, regions...)...)
		more()
		c.add("new", 7)
		c.add("late", 14) // a command has added it, and it is not in the configuration
		if log := c.err.String(); !strings.Contains(log, "the configuration does not name it\" region=late") {
			t.Errorf("the daemon says nothing of the region: %s", log)
		}
		c.command(0, "remove", "late")
		c.gone("late")
	}
	want := ended(t, adder)
	if sum := sumOf(t, c.net.A, c.node, "hot"); sum != want {
		t.Errorf("the memory holds %d, want %d", sum, want)
	}
	c.takeOver()
	if c.gone("new"); kept {
		c.gone("hot")
	} else if sum := sumOf(t, c.net.A, c.node, "hot"); sum != want {
		t.Errorf("after a takeover the memory holds %d, want %d", sum, want)
	}
	c.add("r", map[bool]int{true: 0, false: 7}[kept])
	c.end()
	if id := programOf(t, c.net.B); id != 0 && !c.cutShort() {
		t.Errorf("program %d is left", id)
	}
	if !c.cutShort() {
		c.pinned(false)
	}
}

// command changes the regions, and ends with a code.
func (c *changing) command(code int, args ...string) {
	c.t.Helper()
	p := xdpfab(c.t, c.net.B, append(append([]string{"region"}, args...), "--control", c.socket))
	if got := p.code(); got != code {
		c.t.Fatalf("%s: code %d, want %d: %s", p.name, got, code, p.err.String())
	}
}

// takeOver has another daemon take over.
func (c *changing) takeOver(flags ...string) {
	c.t.Helper()
	next := launch(c.t, c.net.B, c.socket, append(append(c.flags, "--takeover"), flags...)...)
	next.ready()
	c.wants(0)
	c.node = next
}

// add adds 7 to the second word of a region, as the first one is an adder's.
func (c *changing) add(region string, before int) {
	c.t.Helper()
	args := []string{"atomic", "sum", "uint64", "7", "--offset", "8", "-i", c.net.A.IfName, "--peer", c.addr(), "--region", region}
	if got := answer[atomicReport](c.t, c.net.A, args...); fmt.Sprint(got.Before) != fmt.Sprint([]int{before}) {
		c.t.Errorf("%s held %v, want %d", region, got.Before, before)
	}
}

// gone wants a region to be gone.
func (c *changing) gone(region string) {
	c.t.Helper()
	gone(xdpfab(c.t, c.net.A, []string{"atomic", "read", "uint64", "-i", c.net.A.IfName, "--peer", c.addr(), "--region", region}), region)
}

// pinned wants what is resident to be kept, or not.
func (c *changing) pinned(want bool) {
	c.t.Helper()
	if c.folder == "" {
		return
	}
	_, err := os.Lstat(c.folder)
	if is := !errors.Is(err, fs.ErrNotExist); is != want {
		c.t.Errorf("%s is there: %t, want %t", c.folder, is, want)
	}
}
