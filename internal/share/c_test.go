// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
)

// cGuest builds the guest in C.
func cGuest(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: apt-get install gcc libc6-dev")
	}
	path := filepath.Join(t.TempDir(), "guest")
	out, err := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-I", "../../include/xdpfab", "-o", path, "testdata/guest.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// A program in C posts and completes through the rings, and sleeps in between.
func TestGuestInC(t *testing.T) {
	guest := cGuest(t)
	w := newWorld(t)
	words := w.region(5, 4096)
	g := w.guest(Sizes{Entries: 16, Arena: MinArena, Arrivals: MinArrivals})
	w.guests = nil // its engine is the program's
	const adds = 100
	c := exec.Command(guest, "1", "5", fmt.Sprint(uint8(atomic.Sum)), fmt.Sprint(uint8(atomic.Uint64)), fmt.Sprint(adds))
	for _, fd := range []int{g.guestRing.segment.FD(), g.guestRing.doorbell.FD()} {
		own, err := unix.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(own), "shared")
		defer f.Close()
		c.ExtraFiles = append(c.ExtraFiles, f)
	}
	var out, said strings.Builder
	c.Stdout, c.Stderr = &out, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil || strings.TrimSpace(out.String()) != fmt.Sprint(adds-1) || words[0] != adds {
				t.Errorf("%v: %s%s, word %d; want %d and %d", err, &out, &said, words[0], adds-1, adds)
			}
			return
		default:
			w.step()
		}
	}
}
