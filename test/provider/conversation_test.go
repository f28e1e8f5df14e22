// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// long reports whether a test may take minutes: make provider-check asks for that.
func long() bool { return os.Getenv("XDPFAB_LONG") != "" }

// whole builds a program of provider/test with all of the provider and a daemon of a
// kind.
func whole(t *testing.T, program string) string {
	t.Helper()
	files, err := filepath.Glob(source + "*.c")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files of the provider: %v", len(files), err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	return build(t, sanitized, program, append(files, "test/fake.c")...)
}

// Whatever a daemon says, cut at each byte or damaged, a program comes to an end, with
// the errors of libfabric, and leaves nothing open.
func TestConversation(t *testing.T) {
	t.Parallel()
	path, rounds := whole(t, "conversation_test"), 100
	if long() {
		rounds = 5000
	}
	if got := run(t, nil, path, "cuts", t.TempDir()); string(got) != "ok\n" {
		t.Errorf("said %q", got)
	}
	var works, of int
	got := run(t, nil, path, "damaged", t.TempDir(), fmt.Sprint(rounds), "1")
	if _, err := fmt.Sscanf(string(got), "%d of %d had", &works, &of); err != nil || works < of/4 || works == of {
		t.Errorf("said %q: %v: damage that is too great or too small shows nothing", got, err)
	}
}

// Daemons that are stopped do not keep a program from the one that answers, and cost it
// one limit together; the log names their sockets.
func TestStoppedDaemons(t *testing.T) {
	t.Parallel()
	if got := run(t, nil, whole(t, "conversation_test"), "stopped", t.TempDir()); string(got) != "ok\n" {
		t.Errorf("said %q", got)
	}
}

// Whatever a daemon writes into the rings, a program stays within its memory.
func TestRings(t *testing.T) {
	t.Parallel()
	path, rounds := whole(t, "rings_test"), 100
	if long() {
		rounds = 10000
	}
	if got := run(t, nil, path, t.TempDir(), fmt.Sprint(rounds), "1"); strings.TrimSpace(string(got)) != "ok" {
		t.Errorf("said %q", got)
	}
}
