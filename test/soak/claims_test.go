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

// of returns the claims of some kinds, in the order in which they began.
func of(claims []claim, kinds ...uint64) []claim {
	some := slices.DeleteFunc(slices.Clone(claims), func(c claim) bool { return !slices.Contains(kinds, c.Of) })
	slices.SortFunc(some, byBegin)
	return some
}

// conflicts returns what is wrong with claims: more at a time than may be, tokens that do
// not grow, a number that comes twice, or what otherwise cannot be.
func conflicts(claims []claim) (wrong []string) {
	wrong = crowds(of(claims, ofMutex), "the mutex", 1)
	wrong = append(wrong, crowds(of(claims, ofSemaphore), "the semaphore", permits)...)
	wrong = append(wrong, crowds(of(claims, ofReader, ofWriter), "the lock of readers and writers", readers)...)
	wrong = append(wrong, crowds(of(claims, ofElection), "the lead", 1)...)
	for _, kind := range []uint64{ofMutex, ofElection} {
		all := of(claims, kind)
		for i := 1; i < len(all); i++ {
			if a, b := all[i-1], all[i]; a.Token >= b.Token {
				wrong = append(wrong, fmt.Sprintf("token %d after %d", b.Token, a.Token))
			}
		}
	}
	for _, kind := range []uint64{ofSequencer, ofTake} {
		given := map[uint64]bool{}
		for _, c := range of(claims, kind) {
			if given[c.Token] {
				wrong = append(wrong, fmt.Sprintf("number %d was given twice", c.Token))
			}
			given[c.Token] = true
		}
	}
	return slices.Concat(wrong, leaders(claims), taken(claims), rounds(claims), counted(claims))
}

// leaders returns what was told of leaders of the past.
func leaders(claims []claim) (wrong []string) {
	var led uint64
	for _, c := range of(claims, ofElection, ofLeader) {
		switch {
		case c.Of == ofElection:
			led = max(led, c.Token)
		case c.Token < led:
			wrong = append(wrong, fmt.Sprintf("the leader with token %d is told of after that with %d", c.Token, led))
		}
	}
	return wrong
}

// taken returns which values were taken that nobody put before.
func taken(claims []claim) (wrong []string) {
	put := map[uint64]int64{}
	for _, c := range of(claims, ofPut) {
		put[c.Token] = c.From
	}
	for _, c := range of(claims, ofTake) {
		if from, is := put[c.Token]; !is || from > c.To {
			wrong = append(wrong, fmt.Sprintf("value %d was taken, which nobody had put", c.Token))
		}
	}
	return wrong
}

// rounds returns which rounds of the barrier were passed before a party had come.
func rounds(claims []claim) (wrong []string) {
	arrivals := of(claims, ofArrival)
	for _, c := range of(claims, ofRound) {
		round := c.Token >> 16
		for party := range c.Token >> 8 & 0xff {
			if !slices.ContainsFunc(arrivals, func(a claim) bool {
				return a.Token&0xff == party && a.Token>>16 >= round && a.From < c.To
			}) {
				wrong = append(wrong, fmt.Sprintf("round %d was passed before party %d had come", round, party))
			}
		}
	}
	return wrong
}

// counted returns what is wrong with the countdown, the results and the admissions.
func counted(claims []claim) (wrong []string) {
	begun := map[uint64]int64{}
	for _, c := range of(claims, ofTask) {
		if _, is := begun[c.Token]; !is {
			begun[c.Token] = c.From
		}
	}
	for _, c := range of(claims, ofLast) {
		for task := range uint64(tasks) {
			if from, is := begun[task]; !is || from > c.To {
				wrong = append(wrong, fmt.Sprintf("all tasks were done, though not task %d", task))
			}
		}
	}
	results := map[uint64]uint64{}
	for _, c := range of(claims, ofResult) {
		i := c.Token % onces
		if was, is := results[i]; is && was != c.Token {
			wrong = append(wrong, fmt.Sprintf("result %d is %d here, and %d there", i, was, c.Token))
		}
		results[i] = c.Token
	}
	if n := len(of(claims, ofAdmission)); n > quota {
		wrong = append(wrong, fmt.Sprintf("%d requests were admitted, want %d at most", n, quota))
	}
	return wrong
}

func byBegin(a, b claim) int { return cmp.Compare(a.From, b.From) }

// crowds returns the claims that meet too many others. A writer takes all the room.
func crowds(claims []claim, what string, room int) (wrong []string) {
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
		{[]claim{{1, 2, 1, ofElection}, {3, 4, 2, ofElection}, {4, 0, 2, ofLeader}}, 0},
		{[]claim{{1, 3, 1, ofElection}, {2, 4, 2, ofElection}}, 1},
		{[]claim{{1, 2, 1, ofElection}, {3, 4, 2, ofElection}, {4, 0, 1, ofLeader}}, 1},
		{[]claim{{1, 0, 7, ofPut}, {0, 2, 7, ofTake}}, 0},
		{[]claim{{1, 0, 7, ofPut}, {0, 2, 7, ofTake}, {0, 3, 7, ofTake}}, 1},
		{[]claim{{0, 2, 7, ofTake}}, 1},
		{[]claim{{3, 0, 7, ofPut}, {0, 2, 7, ofTake}}, 1},
		{[]claim{{1, 0, 5<<16 | 2<<8, ofArrival}, {2, 0, 5<<16 | 2<<8 | 1, ofArrival}, {0, 3, 5<<16 | 2<<8, ofRound}}, 0},
		{[]claim{{1, 0, 5<<16 | 2<<8, ofArrival}, {2, 0, 4<<16 | 2<<8 | 1, ofArrival}, {0, 3, 5<<16 | 2<<8, ofRound}}, 1},
		{[]claim{{1, 0, 5<<16 | 2<<8, ofArrival}, {4, 0, 5<<16 | 2<<8 | 1, ofArrival}, {0, 3, 5<<16 | 2<<8, ofRound}}, 1},
		{[]claim{{1, 0, 0, ofTask}, {1, 0, 1, ofTask}, {1, 0, 2, ofTask}, {1, 0, 3, ofTask}, {0, 2, 0, ofLast}}, 0},
		{[]claim{{1, 0, 0, ofTask}, {1, 0, 1, ofTask}, {3, 0, 2, ofTask}, {0, 2, 0, ofLast}}, 2},
		{[]claim{{0, 0, onces, ofResult}, {0, 0, onces, ofResult}, {0, 0, onces + 1, ofResult}}, 0},
		{[]claim{{0, 0, onces, ofResult}, {0, 0, 2 * onces, ofResult}}, 1},
		{slices.Repeat([]claim{{Of: ofAdmission}}, quota), 0},
		{slices.Repeat([]claim{{Of: ofAdmission}}, quota+1), 1},
	} {
		if wrong := conflicts(c.claims); len(wrong) != c.wrong {
			t.Errorf("%v: %q, want %d", c.claims, wrong, c.wrong)
		}
	}
}
