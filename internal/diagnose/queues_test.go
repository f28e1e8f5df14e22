// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// A queue that nobody serves stays silent when it is asked once more. A session that was
// late answers then.
func TestLateSessionIsNoDeafQueue(t *testing.T) {
	for name, c := range map[string]struct {
		late, deaf []int // sessions, from 0 on
		want       int
		twice      []int // sessions that were asked twice
	}{
		"all answer":            {nil, nil, 4, nil},
		"one is late":           {[]int{1}, nil, 4, []int{1}},
		"two are late":          {[]int{0, 3}, nil, 4, []int{0, 3}},
		"a deaf queue":          {nil, []int{1, 2}, 2, []int{1}},
		"late, and then a deaf": {[]int{0}, []int{2, 3}, 2, []int{0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var twiceOf []int
			asked := 0
			got, err := answers(4, func(twice bool) (bool, error) {
				n := asked
				asked++
				late, deaf := slices.Contains(c.late, n), slices.Contains(c.deaf, n)
				if twice && (late || deaf) {
					twiceOf = append(twiceOf, n)
				}
				return !deaf && (!late || twice), nil
			})
			if got != c.want || err != nil || !slices.Equal(twiceOf, c.twice) {
				t.Errorf("%d answer, %v, after two questions to %v: want %d, and %v", got, err, twiceOf, c.want, c.twice)
			}
		})
	}
	bad := errors.New("bad")
	if got, err := answers(4, func(bool) (bool, error) { return false, bad }); got != 0 || !errors.Is(err, bad) {
		t.Errorf("%d, %v: want the error", got, err)
	}
}

// The second question goes to the peer from the same endpoint.
func TestAskedTwice(t *testing.T) {
	here, there, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(here.CloseAll(), there.CloseAll()) })
	if _, err := there.Serve("r", 4096); err != nil {
		t.Fatal(err)
	}
	d := &diagnosis{Question: Question{Timeout: testnet.Patience}, dom: here, addr: there.Interface().MAC}
	for _, twice := range []bool{false, true} {
		asked := 0
		err := d.apart(t.Context(), twice, func(ctx context.Context, p *xdpfab.Peer) error {
			if asked++; asked == 1 {
				return fmt.Errorf("it is late: %w", xdpfab.ErrPeerSilent)
			}
			_, err := p.Lookup(ctx, nothing)
			return err
		})
		if want := 1; !twice && (asked != want || !errors.Is(err, xdpfab.ErrPeerSilent)) {
			t.Errorf("once: asked %d times, %v", asked, err)
		}
		if want := 2; twice && (asked != want || !errors.Is(err, xdpfab.ErrNoRegion)) {
			t.Errorf("twice: asked %d times, %v", asked, err)
		}
	}
}
