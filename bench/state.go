// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// coreState is how far the two cores were from each other during a sample.
type coreState string

const (
	near  coreState = "near"
	far   coreState = "far"
	mixed coreState = "mixed" // it changed, or is not known
)

// pings are the two figures of a sample: how long a cache line took from one core to the
// other, in ns; 0 if it is not known.
type pings struct {
	Before float64   `json:"ping_before_ns"`
	After  float64   `json:"ping_after_ns"`
	State  coreState `json:"cores"`
}

// stateOf tells the state from both figures. The state may have changed twice in between,
// which no tag shows: samples are short.
func stateOf(before, after float64) coreState {
	switch {
	case before == 0 || after == 0:
		return mixed
	case before < nearLimit && after < nearLimit:
		return near
	case before >= nearLimit && after >= nearLimit:
		return far
	default:
		return mixed
	}
}

// ping measures how far the cores are from each other while the processes given, which
// are all that run, stand still.
func (n *network) ping(running ...*process) (ns float64, err error) {
	err = still(running, func() error {
		ns, err = crossing(n.clientCore, n.serverCore, pingTime)
		return err
	})
	return ns, err
}

// still stops processes, calls f, and lets them go on. One that has ended is no error.
func still(running []*process, f func() error) error {
	for _, p := range running {
		_ = p.cmd.Process.Signal(unix.SIGSTOP)
		defer p.cmd.Process.Signal(unix.SIGCONT)
	}
	return f()
}

// nearRounds returns the rounds in which all the contests have a sample with near cores.
func (r *results) nearRounds(ids ...string) (rounds []int) {
	for round := range r.rounds {
		if !slices.ContainsFunc(ids, func(id string) bool {
			s := r.sample(id, round)
			return s == nil || s.State != near
		}) {
			rounds = append(rounds, round)
		}
	}
	return rounds
}

// chosen returns those of the values of all rounds that count: those of near rounds, or
// all if there are none.
func chosen(v []float64, nearRounds []int) []float64 {
	if len(nearRounds) == 0 {
		return v
	}
	var out []float64
	for _, i := range nearRounds {
		out = append(out, v[i])
	}
	return out
}

// shares returns the share of the samples in each state.
func (r *results) shares() map[coreState]float64 {
	shares, all := map[coreState]float64{}, 0.0
	for _, samples := range r.samples {
		for _, s := range samples {
			if s.Failed == "" {
				shares[s.State]++
				all++
			}
		}
	}
	for state := range shares {
		shares[state] /= all
	}
	return shares
}

// cores says in which state the cores were, for a table.
func (r *results) cores() string {
	s := r.shares()
	return fmt.Sprintf("The cores were near to each other in %.0f %% of the samples, far in %.0f %%, "+
		"mixed in %.0f %%.\n"+
		"Figures are of near samples, and ratios of rounds in which both are near, where there are any.\n"+
		"Least and most are of all samples.", 100*s[near], 100*s[far], 100*s[mixed])
}
