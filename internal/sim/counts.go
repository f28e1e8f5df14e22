// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
)

// counter is a kind of thing that happened in a run.
type counter int

// The counters. Faults come first.
const (
	lost counter = iota
	duplicated
	reordered
	corrupted
	replayed
	cutOff
	clogged
	tailDropped
	rxOverflow
	toTheDead
	misaddressed
	txShort
	partitions
	clogs
	stalls
	crashes
	restartsKept
	restartsFresh
	clockLeaps
	deregistrations
	guestDeaths
	phases
	freezes
	moves
	steerings
	shuts
	cancels
	renouncements
	// Outcomes of the operations.
	operations
	extended
	flushed
	signalsCame
	successes
	notExecuted
	unknowns
	restarted
	resolvedLater
	lostWithPoster
	eventsCame
	placesRefused
	lettersCame
	combinations
	truncations
	messagesRefused
	messagesBroken
	messagesDropped
	framesHanded
	receivesPosted
	receivesCancelled
	peeks
	// Traffic.
	packets
	resends
	anyOrders
	narrowPaths
	widePaths
	steps
	numCounters
)

var counterNames = [numCounters]string{
	"lost", "duplicated", "reordered", "corrupted", "replayed", "cut off", "clogged", "tail-dropped",
	"ring overflow", "to the dead", "misaddressed", "tx short", "partitions", "clogs", "stalls", "crashes",
	"restarts (memory kept)", "restarts (memory fresh)", "clock leaps", "deregistrations", "deaths of guests",
	"phases", "freezes", "moves", "steerings", "shuts", "cancels", "peers closed behind operations",
	"operations", "by Extend", "flushes", "signals", "success", "not executed", "unknown", "restarted",
	"resolved later",
	"lost with their poster",
	"events", "places refused",
	"messages received", "tagged atomics", "truncated", "messages held back", "messages broken off",
	"messages dropped on the way", "frames handed to guests", "receives", "receives cancelled", "messages peeked at",
	"packets", "resends", "sessions without order", "paths found narrow", "paths found wide", "steps",
}

// Report is the outcome of one or several runs.
type Report struct {
	Runs    int
	Virtual int64  // ns, sum
	Trace   uint64 // hash of everything that happened; of one run
	Failure error  // the first violated invariant
	counts  [numCounters]int
}

// Add adds another report's figures.
func (r *Report) Add(o *Report) {
	r.Runs += o.Runs
	r.Virtual += o.Virtual
	for i, n := range o.counts {
		r.counts[i] += n
	}
}

// String returns the figures as lines.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %.1f s of virtual time", r.Runs, float64(r.Virtual)/float64(second))
	sections := map[counter]string{lost: "faults", operations: "operations", packets: "traffic"}
	for c, n := range r.counts {
		if s, ok := sections[counter(c)]; ok {
			fmt.Fprintf(&b, "\n  %s:", s)
		}
		if n > 0 {
			fmt.Fprintf(&b, " %s %d,", counterNames[c], n)
		}
	}
	return strings.TrimSuffix(b.String(), ",")
}
