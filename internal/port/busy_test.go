// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xsk"
)

// fakeNAPIs are those of a NIC with as many queues: queue q has NAPI q+1.
type fakeNAPIs []nic.Deferral

func (f fakeNAPIs) Of(_, queue int) (uint32, error) {
	if queue >= len(f) {
		return 0, fmt.Errorf("no NAPI of queue %d: %w", queue, unix.EOPNOTSUPP)
	}
	return uint32(queue + 1), nil
}

func (f fakeNAPIs) Deferral(id uint32) (nic.Deferral, error) { return f[id-1], nil }

func (f fakeNAPIs) Defer(id uint32, d nic.Deferral) error { f[id-1] = d; return nil }

// An interface that is opened for busy polling holds the interrupts of its queues back
// until it is closed. One that is opened without it lets those in that a process has held
// back which was killed. Where they cannot be held back, it says how they can.
func TestHoldBack(t *testing.T) {
	was := napis
	t.Cleanup(func() { napis = was })
	p := testnet.NewVeth(t, testnet.Options{})
	path := filepath.Join(t.TempDir(), "x.napi")
	busy := Options{BusyPoll: xsk.BusyPoll{Time: time.Microsecond}, Remember: path}
	queues := make(fakeNAPIs, 3)
	napis = queues
	opened := func(n int, o Options) (i *Interface, err error) {
		i = &Interface{name: p.A.IfName, index: p.A.IfIndex}
		return i, p.A.Do(func() error {
			i.netns = thisNamespace()
			return i.holdBack(n, o)
		})
	}
	held := func(what string, want int) {
		t.Helper()
		for q, d := range queues {
			if is := d == nic.BusyDeferral; is != (q < want) || !is && d != (nic.Deferral{}) {
				t.Errorf("%s: queue %d has %+v; want %d queues held back", what, q, d, want)
			}
		}
		if _, err := os.Stat(path); os.IsNotExist(err) != (want == 0) {
			t.Errorf("%s: the file: %v", what, err)
		}
	}
	i, err := opened(2, busy)
	if err != nil {
		t.Fatal(err)
	}
	held("open", 2)
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	held("closed", 0)
	for _, o := range []Options{busy, {Remember: path}} {
		if _, err := opened(3, busy); err != nil { // and killed
			t.Fatal(err)
		}
		held("open again", 3)
		i, err := opened(1, o)
		if err != nil {
			t.Fatal(err)
		}
		if o.BusyPoll.Time == 0 {
			held("not polled", 0)
		} else {
			held("polled by the next", 1)
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
		held("closed again", 0)
	}
	_, err = opened(4, busy)
	if err == nil || !strings.Contains(err.Error(), "no NAPI of queue 3") || !strings.Contains(err.Error(), "echo 50000 > /sys/class/net/"+p.A.IfName) {
		t.Errorf("a queue without a NAPI: %v", err)
	}
	held("refused", 0)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := opened(1, busy); err == nil || !strings.Contains(err.Error(), "remove the file "+path) {
		t.Errorf("busy polling, and a file that is damaged: %v", err)
	}
	i, err = opened(1, Options{Remember: path})
	if err != nil || !strings.Contains(i.StillHeld(), "remove the file "+path) {
		t.Errorf("a file that is damaged: %v; want it told", err)
	}
}
