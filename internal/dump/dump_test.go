// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dump

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestWhole(t *testing.T) {
	denied := errors.New("denied")
	for _, c := range []struct {
		name  string
		errs  []error // of the calls, the last one of all that follow
		calls int
		want  error
	}{
		{"at once", []error{nil}, 1, nil},
		{"interrupted twice", []error{netlink.ErrDumpInterrupted, fmt.Errorf("links: %w", netlink.ErrDumpInterrupted), nil}, 3, nil},
		{"another error", []error{denied}, 1, denied},
		{"interrupted for ever", []error{netlink.ErrDumpInterrupted}, tries, netlink.ErrDumpInterrupted},
	} {
		calls := 0
		all, err := Whole(func() ([]int, error) {
			calls++
			return []int{calls}, c.errs[min(calls, len(c.errs))-1]
		})
		if calls != c.calls || !errors.Is(err, c.want) || len(all) != 1 || all[0] != calls {
			t.Errorf("%s: %v after %d calls, %v; want %v after %d", c.name, all, calls, err, c.want, c.calls)
		}
	}
}
