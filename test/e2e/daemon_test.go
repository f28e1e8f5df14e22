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
	"time"

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
	n := launch(t, side, filepath.Join(t.TempDir(), socketName), reside(t, args)...)
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
	if !n.cutShort() && !strings.Contains(n.err.String(), "msg=closed") {
		n.t.Errorf("%s did not close: %s", n.name, n.err.String())
	}
	testnet.Eventually(n.t, n.name+" leaves no XDP program on the interface", func() bool { return !attached(n.t, n.side) })
	if _, err := os.Lstat(n.socket); !errors.Is(err, fs.ErrNotExist) {
		n.t.Errorf("%s left its socket: %v", n.name, err)
	}
}

// cutShort reports whether a daemon that ended did so before it had closed: it ends
// within two seconds, also on a machine too busy for it to close in that time. Then the
// kernel does the rest, and peers do not learn of the end.
func (n *node) cutShort() bool { return strings.Contains(n.err.String(), "closing takes too long") }

// kill ends the daemon as a crash would. The kernel cleans the interface, as soon as no
// other process looks at the links of XDP programs, such as that of another test.
func (n *node) kill() {
	n.t.Helper()
	n.signal(unix.SIGKILL)
	if code := n.code(); code != -1 || n.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		n.t.Errorf("%s ended with code %d, want it killed", n.name, code)
	}
	testnet.Eventually(n.t, n.name+": the XDP program has gone with it", func() bool { return !attached(n.t, n.side) })
}

// again starts a daemon in place of one that was killed, and waits until it answers. As
// systemd does, it starts another one if that finds a queue of the interface taken: the
// kernel frees it some time after a crash, on a busy machine later than a daemon waits.
func again(t *testing.T, side *testnet.Side, socket string, args ...string) *node {
	t.Helper()
	for end := time.Now().Add(limit); ; {
		n := launch(t, side, socket, args...)
		for ended := false; !ended; {
			if s, err := n.ask(); err == nil && s.PID == n.cmd.Process.Pid {
				return n
			}
			select {
			case <-n.done:
				ended = true
			case <-time.After(glance):
			}
		}
		if busy := strings.Contains(n.err.String(), "queue is taken"); !busy || time.Now().After(end) {
			t.Fatalf("%s ended with code %d: %s", n.name, n.cmd.ProcessState.ExitCode(), n.err.String())
		}
	}
}

// attached reports whether a side's interface has an XDP program.
func attached(t *testing.T, side *testnet.Side) bool {
	t.Helper()
	return programOf(t, side) != 0
}
