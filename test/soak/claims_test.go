// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"
)

// conflicts returns what is wrong with claims: more at a time than may be, tokens of the
// mutex that do not grow, or a number that comes twice.
func conflicts(claims []claim) (wrong []string) {
	of := func(kinds ...uint64) []claim {
		return slices.DeleteFunc(slices.Clone(claims), func(c claim) bool { return !slices.Contains(kinds, c.Of) })
	}
	wrong = crowds(of(ofMutex), "the mutex", 1)
	wrong = append(wrong, crowds(of(ofSemaphore), "the semaphore", permits)...)
	wrong = append(wrong, crowds(of(ofReader, ofWriter), "the lock of readers and writers", readers)...)
	mutex := of(ofMutex)
	slices.SortFunc(mutex, byBegin)
	for i := 1; i < len(mutex); i++ {
		if a, b := mutex[i-1], mutex[i]; a.Token >= b.Token {
			wrong = append(wrong, fmt.Sprintf("token %d after %d", b.Token, a.Token))
		}
	}
	given := map[uint64]bool{}
	for _, c := range of(ofSequencer) {
		if given[c.Token] {
			wrong = append(wrong, fmt.Sprintf("number %d was given twice", c.Token))
		}
		given[c.Token] = true
	}
	return wrong
}

func byBegin(a, b claim) int { return cmp.Compare(a.From, b.From) }

// crowds returns the claims that meet too many others. A writer takes all the room.
func crowds(claims []claim, what string, room int) (wrong []string) {
	slices.SortFunc(claims, byBegin)
	var now []claim
	for _, c := range claims {
		now = slices.DeleteFunc(now, func(a claim) bool { return a.To <= c.From })
		took := 0
		for _, a := range append(now, c) {
			if took++; a.Of == ofWriter {
				took += room - 1
			}
		}
		if took > room {
			wrong = append(wrong, fmt.Sprintf("token %d gets %s, which token %d holds for another %v, and %d in all", c.Token,
				what, now[0].Token, time.Duration(now[0].To-c.From), len(now)))
		}
		now = append(now, c)
	}
	return wrong
}

// The check can fail.
func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		claims []claim
		wrong  int
	}{
		{[]claim{{3, 4, 2, 0}, {1, 3, 1, 0}}, 0},
		{[]claim{{1, 4, 1, 0}, {3, 5, 2, 0}}, 1},
		{[]claim{{1, 2, 2, 0}, {3, 4, 1, 0}}, 1},
		{[]claim{{1, 4, 1, 0}, {2, 3, 1, 0}}, 2},
		{[]claim{{1, 4, 1, ofSemaphore}, {2, 3, 1, ofSemaphore}, {3, 5, 1, ofSemaphore}, {3, 5, 1, ofMutex}}, 0},
		{[]claim{{1, 4, 1, ofSemaphore}, {2, 4, 1, ofSemaphore}, {3, 5, 1, ofSemaphore}}, 1},
		{[]claim{{1, 4, 1, ofReader}, {2, 4, 1, ofReader}, {3, 5, 1, ofReader}, {5, 6, 1, ofWriter}}, 0},
		{[]claim{{1, 4, 1, ofReader}, {3, 5, 1, ofWriter}}, 1},
		{[]claim{{1, 4, 1, ofWriter}, {3, 5, 1, ofReader}}, 1},
		{[]claim{{0, 0, 7, ofSequencer}, {0, 0, 8, ofSequencer}}, 0},
		{[]claim{{0, 0, 7, ofSequencer}, {0, 0, 7, ofSequencer}}, 1},
	} {
		if wrong := conflicts(c.claims); len(wrong) != c.wrong {
			t.Errorf("%v: %q, want %d", c.claims, wrong, c.wrong)
		}
	}
}
