// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// stop stops a daemon, until the function that it returns is called.
func (n *node) stop() (goOn func()) {
	n.t.Helper()
	n.halt()
	return func() { n.signal(syscall.SIGCONT) }
}

// A command whose daemon is stopped ends by --timeout. It names the process, and what
// has it go on.
func TestStoppedDaemon(t *testing.T) {
	testnet.Require(t)
	t.Parallel()
	net := testnet.NewPair(t, testnet.Options{})
	far := serve(t, net.B, "--region", "r=4KiB")
	own := serve(t, net.A)
	pid := own.cmd.Process.Pid
	says := []string{"the daemon at " + own.socket, "has not answered within", fmt.Sprintf("process %d, xdpfabd", pid),
		fmt.Sprintf("`kill -CONT %d`", pid)}
	goOn := own.stop()
	for line, code := range map[string]int{
		"stat": 4, "stat peers": 4, "stat regions": 4, "stat guests": 4, "kept": 4, "kept remove x": 4,
		"region create x=4KiB": 4, "region remove x": 4, "capture -w /dev/null": 4, "list P": 4, "get P -": 4,
		"put P /dev/null": 4, "atomic sum uint64 1 --peer P": 4, "watch P": 4, "ping P": 4, "bench P": 4, "send P x": 4,
		"receive": 4, "info --probe I": 4, "diagnose P": 5,
	} {
		args := strings.Fields(strings.NewReplacer("P", far.addr(), "I", net.A.IfName).Replace(line))
		switch args[0] {
		case "get", "put", "atomic", "bench":
			args = append(args, "--region", "r")
		}
		args = append(args, "--control", own.socket)
		if args[0] != "info" {
			args = append(args, "--timeout", "100ms")
		}
		xdpfab(t, net.A, args).wants(code, says...)
	}
	goOn()
	own.ready()

	// So it is with commands under way.
	var under []*process
	for _, line := range []string{"ping P -c 0 --interval 10ms", "receive"} {
		args := strings.Fields(strings.ReplaceAll(line, "P", far.addr()))
		under = append(under, start(t, net.A, xdpfabPath, append(args, "--control", own.socket, "--timeout", "10s")))
		own.hasGuests(len(under))
	}
	goOn = own.stop()
	for _, p := range under {
		if code := p.code(); code != 3 && code != 4 {
			t.Errorf("%s: exit code %d", p.name, code)
		}
		p.wants(p.code(), says...)
	}
	goOn()
	own.hasGuests(0)
}

// hasGuests waits until so many programs are attached.
func (n *node) hasGuests(want int) {
	n.t.Helper()
	n.eventually(fmt.Sprintf("%d guests", want), func() bool {
		s, err := n.ask()
		return err == nil && len(s.Guests) == want
	})
}
