// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/version"
)

// A process of another version passes over what it does not know: frames that are handed
// over to a guest, for example, which it would then run again. So the version is raised
// with every change of what a handover says. That of sessions is in package executor.
func TestHandoverKeepsItsShape(t *testing.T) {
	const forVersion, want = 9, "628c58cf83efb91c"
	got, lines := version.Shape(handover{}, residence.HandedState{})
	if got != want || HandoverVersion != forVersion {
		t.Errorf("version %d of the shape %s: want %d of %s; raise the version with the shape, and note both here\n%s",
			HandoverVersion, got, forVersion, want, lines)
	}
}

// A handover of another version is refused as a whole, whatever else it says, and the
// file descriptors that came with it are closed.
func TestHandoverOfAnotherVersion(t *testing.T) {
	for _, v := range []int{HandoverVersion - 1, HandoverVersion + 1, HandoverVersion} {
		ends := socketPair(t)
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		h := &Handover{State: handover{Version: v}, fds: []int{int(write.Fd())}}
		if err := h.Send(ends[0]); err != nil {
			t.Fatal(err)
		}
		_ = write.Close()
		got, err := ReceiveHandover(ends[1])
		if v == HandoverVersion {
			if err != nil || got.State.Version != v || len(got.fds) != 1 || got.Close() != nil {
				t.Errorf("%+v, %v", got, err)
			}
			continue
		}
		want := fmt.Sprintf("state of version %d: want %d", v, HandoverVersion)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d: %v, want %q", v, err, want)
		}
		if n, err := read.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("version %d: a file descriptor is still open: %d, %v", v, n, err)
		}
	}
	if text, err := json.Marshal(handover{}); err != nil || !strings.HasPrefix(string(text), `{"Version":0,`) {
		t.Errorf("%s, %v: the version has to be found by every version", text, err)
	}
}

// socketPair returns the two ends of a connection.
func socketPair(t *testing.T) (ends [2]*net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		ends[i] = c.(*net.UnixConn)
	}
	return ends
}
