// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// The daemon notices the death of a program although a child has inherited everything,
// and lives.
func TestOrphan(t *testing.T) {
	w := newWorld(t)
	p := w.start(0, w.program("ends"), "orphan", w.net.B.IP4.String(), w.key(1))
	child, err := strconv.Atoi(w.line(p))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(child, syscall.SIGKILL)
	if n := len(w.status(0).Guests); n != 1 {
		t.Fatalf("%d guests, want 1", n)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the guest has gone", func() bool { return len(w.status(0).Guests) == 0 })
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
	if err != nil || strings.Contains(string(state), ") Z ") {
		t.Errorf("the child has ended: %s %v", state, err)
	}
}

// leaksUnseen has AddressSanitizer look for no leaks at the end: other tests have it do
// so.
const leaksUnseen = "ASAN_OPTIONS=detect_leaks=0"

// In containers the usual system calls are enough: for messages and memory, for a thread
// that makes progress, and for children.
func TestSandboxed(t *testing.T) {
	w := newWorld(t)
	w.params = []string{leaksUnseen} // the search takes ptrace, which the sandbox refuses
	sandbox, messages, ends := w.program("sandbox"), w.program("messages"), w.program("ends")
	both := func(a, b *running) {
		t.Helper()
		for _, p := range []*running{a, b} {
			if got := w.line(p); got != "ready" {
				t.Fatal(got)
			}
		}
		for _, p := range []*running{a, b} {
			fmt.Fprintln(p.in)
		}
		for _, p := range []*running{a, b} {
			if got := w.end(p); got != "ok" {
				t.Errorf("said %q", got)
			}
		}
	}
	both(w.start(0, sandbox, messages, "101", w.net.B.IP4.String(), "102"),
		w.start(1, sandbox, messages, "102", w.net.A.IP4.String(), "101"))
	to := w.start(0, sandbox, ends, "auto", w.net.B.IP4.String(), w.key(1))
	if got := w.line(to); got != "ready" {
		t.Fatal(got)
	}
	for _, p := range []*running{w.start(1, sandbox, ends, "send", w.net.A.IP4.String(), w.key(1)), to,
		w.start(0, sandbox, ends, "fork", w.net.B.IP4.String(), w.key(1))} {
		if got := w.end(p); got != "ok" {
			t.Errorf("said %q", got)
		}
	}
}

// The layers of libfabric that look on, for one, see nothing that they could not pass on.
func TestHooks(t *testing.T) {
	w := newWorld(t)
	adder := w.program("adder")
	for i, hook := range []string{"trace", "perf", "noop"} {
		w.params = []string{"FI_HOOK=" + hook, leaksUnseen} // libfabric's own hook perf leaks
		if got, want := w.end(w.start(0, adder, w.net.B.IP4.String(), w.key(1), "1000")), fmt.Sprint(1000*(i+1)); got != want {
			t.Errorf("with the hook %s the sum is %q, want %s", hook, got, want)
		}
		if sanitizing := os.Getenv(sanitizerEnv); sanitizing != "" {
			continue // fi_info has not been built with it
		}
		if all := w.end(w.start(0, "fi_info", "-p", "xdpfab")); !strings.Contains(all, "provider: xdpfab") {
			t.Errorf("with the hook %s there are the infos\n%s", hook, all)
		}
	}
}
