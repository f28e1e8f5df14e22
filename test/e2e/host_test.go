// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// attachedWay is the name of a subtest whose clients go through a daemon.
const attachedWay = "attached"

// ways runs a test twice: with clients that open their interface themselves, and with
// clients that go through a daemon which serves it.
func ways(t *testing.T, test func(t *testing.T)) {
	testnet.Require(t)
	for _, way := range []string{"direct", attachedWay} {
		t.Run(way, test)
	}
}

// residentWay is the name of a subtest whose daemon has resident regions.
const residentWay = "resident"

// allWays runs a test in the two ways of ways, and once more on resident regions.
func allWays(t *testing.T, test func(t *testing.T)) {
	ways(t, test)
	if !testnet.KernelBefore(t, 5, 18) {
		t.Run(residentWay, test)
	}
}

// reside has the regions of a daemon resident if the test is of that way.
func reside(t *testing.T, flags []string) []string {
	t.Helper()
	if !strings.HasSuffix(t.Name(), "/"+residentWay) {
		return flags
	}
	flags = slices.Clone(flags)
	for i := 1; i < len(flags); i++ {
		if flags[i-1] != "--region" {
			continue
		}
		separator := ":"
		if strings.Contains(flags[i], ":") {
			separator = ","
		}
		flags[i] += separator + "resident"
	}
	return slices.Concat(flags, []string{"--pin", "none"}) // its death is the regions'
}

// hosts are the daemons of sides on which clients go through one.
var hosts sync.Map // *testnet.Side: *node

// viaDaemon has the clients of a side go through a daemon if the test is of that way.
func viaDaemon(t *testing.T, sides ...*testnet.Side) {
	t.Helper()
	if !strings.HasSuffix(t.Name(), "/"+attachedWay) {
		return
	}
	for _, side := range sides {
		host(t, side)
	}
}

// host starts a daemon on a side, which the side's clients use from then on. It must end
// in order when the test does, and have turned out none of them.
func host(t *testing.T, side *testnet.Side, flags ...string) *node {
	t.Helper()
	return hostAt(t, side, filepath.Join(t.TempDir(), socketName), flags...)
}

// hostAt is host with a control socket.
func hostAt(t *testing.T, side *testnet.Side, socket string, flags ...string) *node {
	t.Helper()
	// How long a silent peer is waited for is the daemon's to say.
	flags = append([]string{"--give-up", silence.String(), "--log-level", "debug"}, flags...)
	h := launch(t, side, socket, flags...)
	h.ready()
	hosts.Store(side, h)
	t.Cleanup(func() {
		hosts.Delete(side)
		select {
		case <-h.done: // the test has ended it
			return
		default:
		}
		h.end()
		if log := h.err.String(); !strings.Contains(log, "guest attached") || strings.Contains(log, "evicted") {
			t.Errorf("%s: want guests, and none turned out: %s", h.name, log)
		}
	})
	return h
}

// through makes a client of a side go through the side's daemon, if it has one.
func through(side *testnet.Side, c *exec.Cmd) {
	h, ok := hosts.Load(side)
	if !ok || c.Path == xdpfabdPath {
		return
	}
	if c.Env == nil {
		c.Env = os.Environ()
	}
	c.Env = append(c.Env, fi.ControlEnv+"="+h.(*node).socket)
}
