// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A call of a host that is stopped ends, with an error that says so, and so does the
// conversation.
func TestHostSilent(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		if errors.Join(err, f.Close()) != nil {
			t.Fatal(err)
		}
		ends[i] = c.(*net.UnixConn)
		defer ends[i].Close()
	}
	a := &guestpkg.Conversation{Talk: share.NewTalk(ends[0]), Calls: map[uint64]chan guestpkg.Answer{}, Patience: time.Millisecond}
	err = a.Call(t.Context(), share.CallCounters, struct{}{}, nil)
	if !errors.Is(err, fi.ErrHostLost) || !strings.Contains(err.Error(), "not answered") {
		t.Errorf("%v, want ErrHostLost", err)
	}
	if b, err := io.ReadAll(ends[1]); err != nil || len(b) == 0 {
		t.Errorf("the host reads %d bytes, %v; want the call, and the end", len(b), err)
	}
	if len(a.Calls) != 0 {
		t.Errorf("%d calls wait still", len(a.Calls))
	}
}

// Functions are all done, one at a time.
func TestWorkQueue(t *testing.T) {
	var c node.WorkQueue
	under, most, n := 0, 0, 0
	for range 100 {
		c.Add(func() {
			under++
			most = max(most, under)
			n++
			under--
		})
	}
	c.Wait()
	if n != 100 || most != 1 {
		t.Errorf("%d of 100 are done, %d at a time", n, most)
	}
}
