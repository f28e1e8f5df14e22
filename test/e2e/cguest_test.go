// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// buildGuestInC builds the guest in C of package host, for nobody to run.
func buildGuestInC(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs a C compiler: apt-get install gcc libc6-dev")
	}
	sources, err := filepath.Glob("../../internal/host/testdata/cguest/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	program := filepath.Join(nobodysDir(t), "cguest")
	args := append([]string{"-std=c11", "-O2", "-I", "../../include/xdpfab", "-o", program}, sources...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// A program in C, as nobody, uses the interface through the daemon, by either kind of
// address, and does not notice that daemons take over from one another meanwhile.
func TestGuestInC(t *testing.T) {
	testnet.Require(t)
	guest := buildGuestInC(t)
	net, file := testnet.NewPair(t, testnet.Options{}), filepath.Join(t.TempDir(), "words")
	d := launch(t, net.B, filepath.Join(t.TempDir(), socketName), "--region", "words=4KiB:backing="+file)
	d.ready()
	socket := filepath.Join(folder, "c-"+socketName) // a folder that nobody can enter
	flags := []string{"--give-up", silence.String(), "--socket-mode", "0666", "--guest", "allow:user=65534", "--log-level", "debug"}
	h := launch(t, net.A, socket, flags...)
	h.ready()
	p := start(t, net.A, guest, []string{socket, d.addr(), "1000000000"}, unprivileged)
	p.eventually("adding", func() bool { return word(t, file) > 0 })
	for range 3 {
		next := launch(t, net.A, socket, append(flags, "--takeover")...)
		next.ready()
		h.wants(0, "another daemon takes this one's place")
		h = next
		was := word(t, file)
		p.eventually("going on", func() bool { return word(t, file) > was })
	}
	p.signal(unix.SIGTERM)
	p.wants(0)
	sum := word(t, file)
	if said := fmt.Sprintf("region words of 4096 bytes, last found %d\n", sum-1); !strings.Contains(p.out.String(), said) {
		t.Errorf("the words hold %d, and it said %s", sum, p.out.String())
	}
	start(t, net.A, guest, []string{socket, net.B.IP4.String(), "100"}, unprivileged).wants(0)
	if now := word(t, file); now != sum+100 {
		t.Errorf("the words hold %d, want %d", now, sum+100)
	}
	h.end()
	if log := h.err.String(); !strings.Contains(log, "guest attached") || strings.Contains(log, "evicted") {
		t.Errorf("log: %s", log)
	}
	d.end()
}
