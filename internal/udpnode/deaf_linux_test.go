// SPDX-License-Identifier: Apache-2.0

package udpnode

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
)

// The refusal names a daemon before anything that could end it, and never has a program
// taken away from a process that may be alive.
func TestDeaf(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "eth0.sock")
	program := &bpf.BusyError{Interface: "eth0", ProgramID: 7, LinkID: 3}
	says := func(folder, first, second string) {
		t.Helper()
		err := deaf(program, folder, socket)
		text := err.Error()
		if at := strings.Index(text, first); at < 0 || strings.Index(text, second) < at {
			t.Errorf("%s: want %q and then %q", text, first, second)
		}
		if strings.Contains(text, "detach") || !errors.Is(err, unix.EBUSY) {
			t.Errorf("%s: errno %v", text, errors.Is(err, unix.EBUSY))
		}
	}
	says("", "`xdpfab resident list`", "`bpftool -f link show id 3`")
	says("/sys/fs/bpf/x/v3", "`xdpfab resident remove /sys/fs/bpf/x`", "--pin /sys/fs/bpf/x:")
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	says("", socket+": use that daemon", "`xdpfab resident list`")
}
