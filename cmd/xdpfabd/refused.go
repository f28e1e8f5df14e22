// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"sync/atomic"
)

// refusalCause says why a program was not let attach, as metrics name it.
type refusalCause int

const (
	refusedDenied refusalCause = iota // by a rule
	refusedNoRule                     // no rule is about it
	refusedFull                       // as many as the rule allows are attached
	numRefusalCauses
)

var refusalNames = [numRefusalCauses]string{"denied", "no_rule", "full"}

// refusedGuest is the error of a program that was not let attach.
type refusedGuest struct {
	cause refusalCause
	error
}

// Unwrap returns the error that the program gets.
func (r refusedGuest) Unwrap() error { return r.error }

// guestRefusals counts programs that were not let attach, and those that had to go.
type guestRefusals struct {
	by        [numRefusalCauses]atomic.Uint64
	turnedOut atomic.Uint64
}

func (g *guestRefusals) count(err error) {
	if r := (refusedGuest{}); errors.As(err, &r) {
		g.by[r.cause].Add(1)
	}
}

// into adds the counts to the counters of a status.
func (g *guestRefusals) into(counters map[string]uint64) {
	for i := range g.by {
		counters["guest_refused_"+refusalNames[i]] = g.by[i].Load()
	}
	counters["guests_turned_out"] = g.turnedOut.Load()
}

// rights are what the rule lets a program do, for the log. A limit that the rule leaves
// out is the usual one.
func (r *rule) rights() []any {
	list := []any{"rule", r.name, "serve", r.Serve}
	fresh := defaultGuest()
	for _, o := range guestOptions {
		switch o.key {
		case "user", "group", "socket", "serve", "deny":
			continue
		}
		if text := o.at(&r.GuestConfig).String(); text != o.at(&fresh).String() {
			list = append(list, o.key, text)
		}
	}
	return list
}
