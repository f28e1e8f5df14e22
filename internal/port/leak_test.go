// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// resources are those that a process can leak by this package.
type resources struct {
	fds    int
	rings  int // mappings of sockets
	memory int // KiB resident
}

func takeStock(t testing.TB) (r resources) {
	t.Helper()
	runtime.GC() // closes what only finalizers know
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	r.fds, r.rings = len(fds), strings.Count(string(maps), "socket:")
	_, size, _ := strings.Cut(string(status), "VmRSS:")
	r.memory, err = strconv.Atoi(strings.Fields(size)[0])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReopenLeavesNothing(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 2, Straight: true})
	b := open(t, p.B, Options{UDP: true, RingSize: 256})
	use := func() {
		a, err := tryOpen(p.A, Options{UDP: true}) // 2 queues of 8 MiB
		if err != nil {
			t.Fatal(err)
		}
		s := newStream(t, a, b, wire.UDP4, 1)
		s.run(t, a.Queues()[1], b.Queues()[1], 50, 8)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = tryOpen(p.A, Options{Copy: 1, RingSize: 32}) // fails late: no zero-copy
		refused(t, err, nil)
		clean(t, p.A)
	}
	use() // everything that is made only once exists now
	before, goroutines := takeStock(t), goleak.IgnoreCurrent()
	const laps = 20
	for range laps {
		use()
	}
	// Packet memory is populated, so it counts as resident: a leak of one queue per lap
	// would amount to 160 MiB. Address space would be no measure: a new thread reserves
	// as much.
	var after resources
	var left error
	defer func() {
		if t.Failed() {
			t.Logf("after reopening %d times: %+v, before: %+v; %v", laps, after, before, left)
		}
	}()
	testnet.Eventually(t, "everything is given back", func() bool { // finalizers take their time
		after, left = takeStock(t), goleak.Find(goroutines)
		return after.fds <= before.fds && after.rings <= before.rings && after.memory <= before.memory+laps*4<<10 && left == nil
	})
}
