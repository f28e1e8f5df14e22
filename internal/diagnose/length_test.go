// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"errors"
	"slices"
	"testing"
)

// A hole swallows every packet that is too long. One answer that comes too late is no
// hole.
func TestLateAnswerIsNoHole(t *testing.T) {
	bad := errors.New("bad")
	for name, c := range map[string]struct {
		fail  []int // these tries, from 0 on
		err   int   // this one ends in an error; 0 for none
		want  int
		tries []int
	}{
		"all pass":    {nil, 0, 1500, []int{1500}},
		"late once":   {[]int{0}, 0, 1500, []int{1500, 1492, 1500}},
		"late twice":  {[]int{0, 1}, 0, 1500, []int{1500, 1492, 1450, 1500}},
		"a hole":      {[]int{0, 2}, 0, 1492, []int{1500, 1492, 1500}},
		"no way":      {[]int{0, 1, 2}, 0, 0, []int{1500, 1492, 1450}},
		"bad":         {[]int{0}, 1, 0, []int{1500, 1492}},
		"bad at last": {[]int{0, 2}, 2, 1492, []int{1500, 1492, 1500}},
	} {
		t.Run(name, func(t *testing.T) {
			var tries []int
			got, err := longestThat(func(length int) (bool, error) {
				n := len(tries)
				tries = append(tries, length)
				if c.err > 0 && n == c.err {
					return false, bad
				}
				return !slices.Contains(c.fail, n), nil
			}, []int{1500, 1492, 1450})
			if got != c.want || (err != nil) != (c.err > 0) || !slices.Equal(tries, c.tries) {
				t.Errorf("%d after %v, %v: want %d after %v", got, tries, err, c.want, c.tries)
			}
		})
	}
}

// The length that is searched for is found to the unit of lengths, or as far as the looks
// go.
func TestBetween(t *testing.T) {
	for _, c := range []struct{ real, low, high, least int }{
		{1000, 576, 1280, 1000 - 40}, {1480, 1450, 1492, 1480}, {1450, 1450, 1492, 1450}, {1491, 1450, 1492, 1480},
	} {
		tries := 0
		got, err := between(func(length int) (bool, error) { tries++; return length <= c.real, nil }, c.low, c.high)
		if err != nil || got > c.real || got < c.least || tries > looks {
			t.Errorf("%+v: %d after %d tries, %v", c, got, tries, err)
		}
	}
	bad := errors.New("bad")
	if got, err := between(func(int) (bool, error) { return false, bad }, 576, 1280); got != 576 || !errors.Is(err, bad) {
		t.Errorf("%d, %v", got, err)
	}
}
