// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// buildInC builds sources in testdata, with ring.h, and returns the path of the program.
func buildInC(t *testing.T, pattern string) string {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs a C compiler: apt-get install gcc libc6-dev")
	}
	sources, err := filepath.Glob("testdata/" + pattern)
	if err != nil || len(sources) == 0 {
		t.Fatalf("%s: %v, %v", pattern, sources, err)
	}
	program := filepath.Join(t.TempDir(), "program")
	args := []string{"-std=c11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-I", "../../include/xdpfab",
		"-o", program}
	if out, err := exec.Command(cc, append(args, sources...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// A program in C, with nothing but libc, attaches by itself, is refused with a number,
// operates on a peer's memory, waits for a word of it, sends a message, and receives the
// answer.
func TestGuestInC(t *testing.T) {
	guest := buildInC(t, "cguest/*.c")
	d := newDaemon(t, host.GuestLimits{})
	r, err := d.peer.NewRegion("words", 4096)
	if err != nil {
		t.Fatal(err)
	}
	first, err1 := r.Uint64(0)
	second, err2 := r.Uint64(1)
	lock, err4 := r.Uint64(2)
	box, err3 := d.peer.NewMailbox(xdpfab.MailboxAttr{Number: 5})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	second.Store(41)
	answered := make(chan error, 1)
	go func() { answered <- d.answers(box) }()
	const adds = 1000
	out, err := exec.Command(guest, d.socket, "02:00:00:00:00:0b", fmt.Sprint(adds), "5").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testnet.Within(t, "the answer", func() { err = <-answered })
	if err != nil {
		t.Error(err)
	}
	want := fmt.Sprintf(`region words of 4096 bytes, last found %d
second word 41, then 42
recalled 1234: outcome 1, reason %d
answer: hello from C, too
`, adds-1, session.Cancelled)
	refused, rest, _ := strings.Cut(string(out), "\n")
	if !strings.HasPrefix(refused, `peer "nowhere": 22, arguments of the call: bad address "nowhere": neither`) {
		t.Errorf("%s", refused)
	}
	if rest != want || first.Load() != adds || second.Load() != 42 || lock.Load() != 7 {
		t.Errorf("words %d, %d and %d; it said\n%swant %d, 42 and 7, and\n%s", first.Load(), second.Load(),
			lock.Load(), rest, adds, want)
	}
}

// answers answers one message of the program.
func (d *daemon) answers(box *xdpfab.Mailbox) error {
	m, err := box.Receive(d.Context(), make([]byte, 64))
	if err != nil {
		return err
	}
	p, err := d.peer.Dial(d.Context(), m.From.String())
	if err != nil {
		return err
	}
	return p.Send(d.Context(), append(m.Bytes, ", too"...))
}
