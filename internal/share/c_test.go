// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/mr"
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

// ring.h says what the structures here are.
func TestHeaderForC(t *testing.T) {
	out, err := exec.Command(cGuest(t), "layout").Output()
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	fields := func(name string, of any, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			f, ok := reflect.TypeOf(of).FieldByName(pairs[i+1])
			if !ok {
				t.Fatalf("%s has no field %s", name, pairs[i+1])
			}
			fmt.Fprintf(&want, "%s.%s %d %d\n", name, pairs[i], f.Offset, f.Type.Size())
		}
	}
	fields("header", header{}, "magic", "magic", "version", "version", "entries", "entries", "arena", "arena", "posted", "posted", "taken", "taken",
		"completed", "completed", "seen", "seen", "host_sleeps", "hostSleeps", "guest_sleeps", "guestSleeps",
		"arrived", "arrived", "read", "read", "host_waits", "hostWaits")
	fields("entry", engine.Entry{}, "cookie", "Cookie", "key", "Key", "offset", "Offset", "data", "Data", "count", "Count", "incarnation", "Incarnation",
		"peer", "Peer", "verb", "Verb", "op", "Opcode", "datatype", "Datatype", "flags", "Flags", "operands", "Inline")
	fields("places", places{}, "operand", "Operand", "compare", "Compare", "result", "Result", "extents", "Extents", "extent_count", "ExtentCount")
	fields("extent", mr.Extent{}, "offset", "Offset", "key", "Key", "count", "Count")
	fields("completion", engine.Completion{}, "cookie", "Cookie", "life", "Data", "length", "Length", "outcome", "Outcome", "status", "Status", "reason", "Reason",
		"flags", "Flags", "result", "Inline")
	fields("arrival", record{}, "kind", "Kind", "flags", "Flags", "endpoint", "Endpoint", "bytes", "Bytes", "session", "Session", "length", "Length",
		"tag", "Tag", "data", "Data", "source", "Source", "mac", "MAC", "has_ip", "HasIP", "ip", "IP", "form", "Form", "count", "Count", "offset", "Offset", "unused", "Unused")
	fields("room", matching.Room{}, "messages", "Messages", "bytes", "Bytes")
	fields("admission", Admission{}, "identity", "Identity", "values", "Values", "length", "Length", "endpoint", "Endpoint", "status", "Status", "room", "Room")
	fmt.Fprintf(&want, "arrival %d\n", recordLen)
	fmt.Fprintf(&want, "entry %d\ncompletion %d\nextent %d\n", entryLen, completedLen, extentLen)
	if string(out) != want.String() {
		t.Errorf("ring.h has\n%swant\n%s", out, &want)
	}
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
