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
