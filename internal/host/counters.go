// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/share"
)

// interfaceCounters reads the counters of the interface, which takes many system calls.
// The guest's calls take turns: those that have not begun when it ends, or moves to
// another process, read nothing more.
func (g *Guest) interfaceCounters(ctx context.Context) (map[string]uint64, error) {
	g.counting.Lock()
	defer g.counting.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return g.h.n.Dev.Counters()
}

// counters are those of the interface and of the guest.
func (g *Guest) counters(ctx context.Context, _ struct{}) (map[string]uint64, error) {
	all, err := g.interfaceCounters(ctx)
	if err != nil {
		return nil, err
	}
	var c share.Counts
	g.St.Call(func() { c = g.Ring.Counts })
	all["guest_taken"], all["guest_refused"], all["guest_completed"] = c.Taken, c.Refused, c.Completed
	return all, nil
}
