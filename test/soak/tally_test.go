// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
)

// tally counts what has been survived so far, over all tests of the process.
// The soak test prints it.
type tally struct {
	mu     sync.Mutex
	counts map[string]uint64
	wire   faultwire.Stats
}

var survived = tally{counts: map[string]uint64{}}

func (y *tally) add(what string, n int) {
	y.mu.Lock()
	y.counts[what] += uint64(n)
	y.mu.Unlock()
}

func (y *tally) addWire(s faultwire.Stats) {
	y.mu.Lock()
	y.wire.Add(s)
	y.mu.Unlock()
}

// order is how the summary lists the counts.
var order = []string{
	"operations", "completed ok", "completed not executed", "completed unknown", "completed restarted",
	"resolved: ran", "resolved: never ran", "unresolved arrays", "unresolved",
	"calls", "calls ok", "calls left early: ran", "calls left early: never ran",
	"next hops changed", "neighbours forgotten", "addresses taken away", "addresses changed places",
	"partitions", "daemon kills", "daemon kills: resident", "client kills", "guest kills", "takeovers among rogues", "takeovers refused", "daemon stalls", "cpu hogs", "sessions retired", "linearizable histories",
	"worlds with resident regions", "resident_ops_executed", "resident_passed",
}

// line is a short form for progress.
func (y *tally) line(since time.Time, rounds int) string {
	y.mu.Lock()
	defer y.mu.Unlock()
	c := y.counts
	return fmt.Sprintf("soak %4ds: %d rounds, %d operations (%d ok, %d not executed, %d unknown, %d restarted), %d kills, %d partitions",
		int(time.Since(since).Seconds()), rounds, c["operations"], c["completed ok"], c["completed not executed"],
		c["completed unknown"], c["completed restarted"], c["daemon kills"]+c["client kills"]+c["guest kills"], c["partitions"])
}

// String is the summary.
func (y *tally) String() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	var b strings.Builder
	for _, what := range order {
		fmt.Fprintf(&b, "  %-24s %d\n", what, y.counts[what])
	}
	for _, what := range slices.Sorted(maps.Keys(y.counts)) {
		if !slices.Contains(order, what) {
			fmt.Fprintf(&b, "  %-24s %d\n", what, y.counts[what])
		}
	}
	fmt.Fprintf(&b, "  wire: %v\n", y.wire)
	return b.String()
}

// count reads one count.
func (y *tally) count(what string) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return int(y.counts[what])
}
