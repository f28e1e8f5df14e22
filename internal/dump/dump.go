// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package dump lists what the kernel tells by netlink as a whole.
//
// The kernel lists links, addresses, routes and neighbours piece by piece. If one comes
// or goes in between, it marks the list as interrupted (NLM_F_DUMP_INTR of netlink(7)):
// pieces may be missing. On a machine with many containers that is an everyday matter,
// not a failure.
package dump

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// tries bounds how often a list is asked for. A try takes a fraction of a millisecond,
// and it is interrupted only if something changes meanwhile.
const tries = 16

// Whole calls list until its answer was not interrupted. It returns the last answer and
// its error.
func Whole[T any](list func() (T, error)) (all T, err error) {
	for range tries {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
