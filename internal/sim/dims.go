// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
)

// Dims is a set of dimensions: the parts that a run may have beyond a second of
// storm.
type Dims uint

// The dimensions.
const (
	Hours    Dims = 1 << iota // half the runs live hours: busy, idle, cut off for up to a minute, restarted
	Freeze                    // nodes are off their cores for 1 to 200 s, or step only when they have work
	Outage                    // partitions and dead nodes for up to hours, while old frames keep coming
	Patient                   // give-up times longer than targets keep silent sessions
	Moves                     // gateways get other addresses
	Queues                    // several queues a node, and their steering changes
	Shut                      // endpoints close for a while
	Ends                      // endpoints that close end their sessions
	Prompt                    // no operation waits for a whole give-up time unless there is trouble
	Tight                     // too few sessions and buffers for all clients
	Aliases                   // several names of one pair
	Cancels                   // callers that stop waiting
	Messages                  // messages, which wait for receives
	Attend                    // guests execute operations on memory of their own
	numDims  = iota

	// Mended are the dimensions in which every promise is kept: those of a run that
	// chooses none.
	Mended = 1<<numDims - 1
)

// All returns all dimensions.
func All() Dims { return 1<<numDims - 1 }

var dimNames = [numDims]string{"hours", "freeze", "outage", "patient", "moves", "queues", "shut", "ends", "prompt",
	"tight", "aliases", "cancels", "messages", "attend"}

func (d Dims) has(x Dims) bool { return d&x != 0 }

// String returns the dimensions in the form that -with takes.
func (d Dims) String() string {
	var names []string
	for i, n := range dimNames {
		if d.has(1 << i) {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

// ParseDims reads names joined by commas; "mended" and "all" stand for sets.
func ParseDims(s string) (d Dims, err error) {
	for name := range strings.SplitSeq(s, ",") {
		switch name {
		case "mended":
			d |= Mended
			continue
		case "all":
			d |= All()
			continue
		}
		found := false
		for i, n := range dimNames {
			if n == name {
				d, found = d|1<<i, true
			}
		}
		if !found {
			return 0, fmt.Errorf("sim: no dimension %q: want some of mended,all,%v, joined by commas", name, All())
		}
	}
	return d, nil
}
