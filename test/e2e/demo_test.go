// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// startDemo starts the demo with temporary files in a folder that it must leave
// empty.
func startDemo(t *testing.T, args ...string) (p *process, temp string) {
	t.Helper()
	testnet.Require(t)
	testnet.SkipOnNICs(t, "the demo's own veth")
	temp = t.TempDir()
	return start(t, nil, xdpfabPath, append([]string{"demo"}, args...), env("TMPDIR="+temp)), temp
}

// checkGone checks that nothing made by the demo is left.
func checkGone(t *testing.T, demo *process, temp string) {
	t.Helper()
	left := namespaces(demo.cmd.Process.Pid)
	files, err := filepath.Glob(temp + "/*")
	if err != nil {
		t.Fatal(err)
	}
	if left = append(left, files...); len(left) > 0 {
		t.Errorf("the demo left %q", left)
	}
	for _, pid := range children() {
		t.Errorf("the demo left process %s", pid)
	}
}

// children lists the processes that run one of the programs, with their command
// lines. Tests run one after another, so these processes belong to the present
// test.
func children() (found []string) {
	exes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range exes {
		if exe, err := os.Readlink(link); err == nil && strings.HasPrefix(exe, folder+"/") {
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			found = append(found, strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

// provider builds the libfabric provider beside the programs, and reports whether all is
// there that the demo's program in C needs.
func provider(t *testing.T) bool {
	t.Helper()
	_, err := exec.LookPath("gcc")
	if _, missing := os.Stat("/usr/include/rdma/fi_atomic.h"); err != nil || missing != nil {
		return false
	}
	dir := filepath.Join(filepath.Dir(xdpfabPath), "provider")
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if out, err := exec.Command("make", "-s", "-j2", "-C", "../../provider", "OUT="+dir, "CFLAGS=-O0").CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	return true
}

func TestDemo(t *testing.T) {
	testnet.Require(t)
	inC := provider(t)
	demo, temp := startDemo(t, "--json")
	type work struct {
		Workload, Got, Want string
		Exact               bool
	}
	type report struct {
		Daemon     control.Status
		Work       []work
		Reads      []any
		Ping       []struct{ Sent, Answered int }
		Latency    []benchReport
		Throughput []benchReport
		Resident   []benchReport
		C          struct {
			Skipped           string
			Adds, First, Last int
		}
		Exact bool
	}
	r := decoded[report](demo)
	if !r.Exact || len(r.Work) != 8 || len(r.Reads) != 4 || len(r.Ping) != 2 || len(r.Latency) == 0 || len(r.Throughput) != 3 || r.Daemon.Counters["ops_executed"] == 0 {
		t.Errorf("report %+v", r)
	}
	for _, w := range r.Work {
		if !w.Exact || w.Got != w.Want || w.Got == "" {
			t.Errorf("%+v is not exact", w)
		}
	}
	if c := r.C; inC && (c.Skipped != "" || c.Adds == 0 || c.Last != c.Adds-1) || !inC && c.Skipped == "" {
		t.Errorf("in C %+v; all that it needs is there: %v", c, inC)
	}
	if n := len(r.Resident); n != 2 && !testnet.KernelBefore(t, 5, 18) {
		t.Errorf("%d figures of a resident region, want 2", n)
	}
	for _, b := range slices.Concat(r.Latency, r.Throughput, r.Resident) {
		if !b.Verified || b.Ops == 0 {
			t.Errorf("%+v is not verified", b)
		}
	}
	checkGone(t, demo, temp)
}

// Ctrl-C at any point: the demo says so by its exit code and tidies up.
func TestDemoInterrupted(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		for what, ready := range map[string]func(p *process, programs string) bool{
			"the namespaces":  func(p *process, _ string) bool { return len(namespaces(p.cmd.Process.Pid)) == 2 },
			"the daemon":      func(_ *process, programs string) bool { return strings.Contains(programs, "/xdpfabd ") },
			"the first work":  func(_ *process, programs string) bool { return strings.Contains(programs, " work ") },
			"the measurement": func(_ *process, programs string) bool { return strings.Contains(programs, " bench ") },
		} {
			if sig == unix.SIGTERM && what != "the daemon" {
				continue // both signals take the same way: once shows it
			}
			t.Run(fmt.Sprint(sig, " at ", what), func(t *testing.T) {
				demo, temp := startDemo(t)
				demo.eventually("reaching "+what, func() bool { return ready(demo, strings.Join(children(), "\n")) })
				demo.signal(sig)
				if code := demo.code(); code != 1 || demo.out.String() != "" {
					t.Errorf("exit code %d after %v, output %q, stderr %q", code, sig, demo.out.String(), demo.err.String())
				}
				if text := demo.err.String(); !strings.HasPrefix(text, "xdpfab: ") || strings.Count(text, "\n") != 1 {
					t.Errorf("stderr %q, want one line", text)
				}
				checkGone(t, demo, temp)
			})
		}
	}
}

// A daemon that cannot run is reported with its own error text.
func TestDemoWithoutDaemon(t *testing.T) {
	fails := filepath.Join(t.TempDir(), "fails")
	if err := os.WriteFile(fails, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	demo, temp := startDemo(t, "--daemon", fails)
	demo.wants(1, "the daemon ended at once")
	checkGone(t, demo, temp)
}

func TestDemoUnprivileged(t *testing.T) {
	testnet.Require(t)
	testnet.SkipOnNICs(t, "the demo's own veth")
	words := append(strings.Fields("--reuid 65534 --regid 65534 --clear-groups"), xdpfabPath, "demo")
	start(t, nil, "/usr/bin/setpriv", words).wants(5, "needs root")
}

// A daemon with a wrong configuration says where it is wrong, and touches
// nothing.
func TestFaultyConfiguration(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	for name, c := range map[string]struct {
		toml string
		want []string
	}{
		"syntax":         {"interface = \"veth0\"\n\nwindow = = 3\n", []string{":3:", "window"}},
		"no value":       {"interface = \"veth0\"\nwindow =\n", []string{":2:", "window"}},
		"unknown key":    {"interface = \"veth0\"\n\n\nwindo = 3\n", []string{":4:", "windo: unknown key"}},
		"type":           {"window = \"many\"\ninterface = \"veth0\"\n", []string{":1:", "window", "want a number from 1 to 64"}},
		"range":          {"interface = \"veth0\"\nwindow = 65\n", []string{":2:", "window", "1 to 64"}},
		"duration":       {"interface = \"veth0\"\ngive-up = \"soon\"\n", []string{":2:", "give-up"}},
		"size":           {"interface = \"veth0\"\n[[region]]\nname = \"r\"\nsize = \"4 apples\"\n", []string{":4:", "region[0].size", "64KiB"}},
		"region twice":   {"interface = \"veth0\"\n[[region]]\nname = \"r\"\nsize = 8\n[[region]]\nname = \"r\"\nsize = 8\n", []string{":6:", "region[1].name"}},
		"unknown access": {"interface = \"veth0\"\n[[region]]\nname = \"r\"\nsize = 8\naccess = \"all\"\n", []string{":5:", "region[0].access"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "xdpfabd.toml")
			if err := os.WriteFile(path, []byte(c.toml), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, extra := range [][]string{nil, {"--check"}} {
				start(t, net.B, xdpfabdPath, append([]string{"--config", path}, extra...)).wants(2, append(c.want, "xdpfabd: "+path)...)
			}
			if attached(t, net.B) {
				t.Error("an XDP program is attached")
			}
		})
	}
	start(t, net.B, xdpfabdPath, []string{"--config", "/nonexistent.toml"}).wants(2, "/nonexistent.toml", "no such file")
}
