// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// socketName is the control socket's, in a folder of the test. No other run of these
// tests has it.
var socketName = fmt.Sprintf("xdpfab-e2e-%d.sock", os.Getpid())

// node is a daemon in a namespace.
type node struct {
	*process
	side   *testnet.Side
	socket string
}

// launch starts a daemon on the side's interface and returns at once.
func launch(t *testing.T, side *testnet.Side, socket string, args ...string) *node {
	t.Helper()
	args = append([]string{"--interface", side.IfName, "--control", socket}, args...)
	return &node{start(t, side, xdpfabdPath, args, env("NOTIFY_SOCKET=")), side, socket}
}

// serve starts a daemon and waits until it answers.
func serve(t *testing.T, side *testnet.Side, args ...string) *node {
	t.Helper()
	n := launch(t, side, filepath.Join(t.TempDir(), socketName), args...)
	n.ready()
	return n
}

// ready waits for the daemon to answer on its control socket.
func (n *node) ready() {
	n.t.Helper()
	n.eventually("answering", func() bool {
		s, err := n.ask()
		return err == nil && s.PID == n.cmd.Process.Pid
	})
}

func (n *node) ask() (control.Status, error) {
	c, err := control.Dial(n.socket)
	if err != nil {
		return control.Status{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(n.t.Context(), limit)
	defer cancel()
	return c.Status(ctx)
}

func (n *node) counters() map[string]uint64 {
	n.t.Helper()
	s, err := n.ask()
	if err != nil {
		n.t.Fatal(err)
	}
	return s.Counters
}

// addr returns the address at which clients find the daemon.
func (n *node) addr() string { return n.side.MAC.String() }

// end asks the daemon to end, which it must do in order and by itself.
func (n *node) end() {
	n.t.Helper()
	n.signal(unix.SIGTERM)
	n.wants(0)
	// A daemon ends within two seconds, also on a machine too busy for it to close in
	// that time: then the kernel does the rest.
	if log := n.err.String(); !strings.Contains(log, "msg=closed") && !strings.Contains(log, "closing takes too long") {
		n.t.Errorf("%s did not close: %s", n.name, log)
	}
	if attached(n.t, n.side) {
		n.t.Errorf("%s left an XDP program on the interface", n.name)
	}
	if _, err := os.Lstat(n.socket); !errors.Is(err, fs.ErrNotExist) {
		n.t.Errorf("%s left its socket: %v", n.name, err)
	}
}

// kill ends the daemon as a crash would. The interface must be clean at once.
func (n *node) kill() {
	n.t.Helper()
	n.signal(unix.SIGKILL)
	if code := n.code(); code != -1 || n.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		n.t.Errorf("%s ended with code %d, want it killed", n.name, code)
	}
	if attached(n.t, n.side) {
		n.t.Errorf("%s: the XDP program outlived it", n.name)
	}
}

// attached reports whether a side's interface has an XDP program.
func attached(t *testing.T, side *testnet.Side) bool {
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
	return l.Attrs().Xdp != nil && l.Attrs().Xdp.Attached
}
