// SPDX-License-Identifier: Apache-2.0

package share

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
)

// A program in C that knows no more than ring.h has an operation of three times the
// arena, which is one operation: each word is changed once, and each result comes.
func TestLongOperationInC(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: apt-get install gcc libc6-dev")
	}
	path := filepath.Join(t.TempDir(), "stream")
	if out, err := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-I", "../../include/xdpfab", "-o", path, "testdata/stream.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w := newWorld(t)
	const size = 3*MinArena + 64
	memory, count := w.region(5, size), size/8
	want := uint64(0)
	for i := range count {
		binary.NativeEndian.PutUint64(memory[8*i:], uint64(3*i))
		want += uint64(3 * i)
	}
	var seen touches
	w.table.All()[0].Observe(&seen)
	g := w.guest(Sizes{Entries: 16, Arena: MinArena, Arrivals: MinArrivals})
	w.guests = nil // its engine is the program's
	c := exec.Command(path, "1", "5", fmt.Sprint(uint8(atomic.Sum)), fmt.Sprint(uint8(atomic.Uint64)), fmt.Sprint(count))
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
			if err != nil || strings.TrimSpace(out.String()) != fmt.Sprint(want) {
				t.Errorf("%v: %s%s, want %d", err, &out, &said, want)
			}
			for i := range count {
				if x := binary.NativeEndian.Uint64(memory[8*i:]); x != uint64(3*i+1) {
					t.Fatalf("word %d is %d, want %d", i, x, 3*i+1)
				}
			}
			if seen.reads != 1 || seen.writes != 0 {
				t.Errorf("counted %+v, want one operation that returns", seen)
			}
			g.idle(t)
			return
		default:
			w.step()
		}
	}
}
