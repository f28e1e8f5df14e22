// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// VerbFlush is a local verb: it completes when every operation has ended that was posted
// before it to the peer or, if Peer is 0, to any peer of the origin. An operation that
// failed has ended, too. Watches do not count. A flush puts nothing on the wire, opens no
// session, and keeps nothing waiting that is posted behind it.
const VerbFlush = wire.VerbLocal + 8

// quiet is a flush that waits. It has left the queue of its remote, or never was in one,
// and takes part in each thing that has still to end: a frame in flight, or a marker,
// which is a flight without a ring in the queue of a remote. Those in the frame are known
// by its cargo.
type quiet struct {
	o    *Origin
	f    *flight // nil once it was cancelled
	left int     // frames and markers
	bad  Result  // a failure to learn the end of something; Success if there was none
}

// quietOf returns the quiet of a flush that has come to the head of its queue. It holds a
// part, which the caller releases by less.
func quietOf(f *flight) *quiet {
	if f.ring == nil {
		return f.Context.(*quiet)
	}
	o := f.ring.origin
	x := &quiet{o: o, f: f, left: 1}
	o.quiets = append(o.quiets, x)
	return x
}

// less is called when a part of it has ended.
func (x *quiet) less() {
	if x.left--; x.left > 0 || x.f == nil {
		return
	}
	x.o.remove(x)
	if x.bad.Outcome != Success {
		x.f.fail(x.bad)
	}
	x.f.finish()
}

func (o *Origin) remove(x *quiet) {
	o.quiets = slices.DeleteFunc(o.quiets, func(y *quiet) bool { return x == y })
}

// marker returns an operation that stands for the flush in the queue of a remote.
func (x *quiet) marker(p PeerID) *flight {
	m := new(flight)
	m.Verb, m.Peer, m.Context = VerbFlush, p, x
	x.left++
	return m
}

// flushAll begins a flush of all peers of the origin.
func (e *Engine) flushAll(f *flight) {
	x := quietOf(f)
	for p := range x.o.roster.all() {
		if e.viaHost != nil || p.r.head != nil || p.r.conn != nil {
			e.route(x.marker(p.id), p)
		}
	}
	x.less()
	e.say()
}

// flushes takes the flushes from the head of the queue: what was posted before them has
// been packed, and the frames that are in flight now are all that it can be in.
func (r *remote) flushes() {
	for r.head != nil && r.head.Verb == VerbFlush && (r.conn == nil || r.conn.stage.buf == nil) {
		r.flush(r.pop())
	}
}

// flush has a flush that has left the queue wait for the frames in flight.
func (r *remote) flush(f *flight) {
	x := quietOf(f)
	r.waitFor(x)
	x.less()
}

// waitFor adds the frames in flight to what a flush waits for: those of the present
// session, and those of one in doubt. The operations of a suspended one have completed.
func (r *remote) waitFor(x *quiet) {
	if s := r.suspended; s != nil && s != r.conn {
		s.waitFor(x)
	}
	if r.conn != nil {
		r.conn.waitFor(x)
	}
}

func (c *conn) waitFor(x *quiet) {
	if c == c.r.suspended && !c.doubted {
		return
	}
	for _, g := range c.frames {
		if g != nil {
			g.quiets = append(g.quiets, x)
			x.left++
		}
	}
	for _, t := range c.tickets {
		if t.f != nil {
			t.quiets = append(t.quiets, x)
			x.left++
		}
	}
}

// settleQuiets is called when everything that the cargo carries has ended.
func (g *cargo) settleQuiets() {
	for _, x := range g.quiets {
		x.less()
	}
	clear(g.quiets)
	g.quiets = g.quiets[:0]
}

// handFlush hands a flush to another remote with the operations that wait before it.
// Those in flight stay.
func (r *remote) handFlush(q *remote, f *flight) {
	x := quietOf(f)
	r.waitFor(x)
	q.push(x.marker(f.Peer))
	x.less()
}

// finishMarker is called when a marker has ended.
func (f *flight) finishMarker() {
	x := f.Context.(*quiet)
	if f.failed {
		x.bad = f.bad
	}
	x.less()
}

// cancelFlush gives up a flush for which match is true, and returns its flight, or nil.
func (o *Origin) cancelFlush(match func(f *flight) bool) *flight {
	for _, x := range o.quiets {
		if f := x.f; match(f) {
			x.f = nil
			o.remove(x)
			return f
		}
	}
	return nil
}

// origins are those whose operations come by rings with cells.
func (e *Engine) origins() map[*Origin]bool {
	all := map[*Origin]bool{}
	for _, r := range e.rings {
		all[r.origin] = true
	}
	return all
}

// checkQuiets makes sure that something is going to end each flush that waits: it is
// counted in by as many frames and markers as it waits for.
func (e *Engine) checkQuiets() error {
	if e.viaHost != nil { // the host has the markers
		return nil
	}
	parts := map[*quiet]int{}
	for _, x := range e.table.all {
		if c, is := x.(*conn); is {
			for _, g := range c.frames {
				g.countQuiets(parts)
			}
			for _, t := range c.tickets {
				for _, x := range t.quiets {
					parts[x]++
				}
			}
		}
	}
	for o := range e.origins() {
		for r := range o.reached() {
			r.countMarkers(parts)
		}
		for _, x := range o.quiets {
			if x.left < 1 || parts[x] != x.left {
				return fmt.Errorf("engine: a flush waits for %d frames and markers, of which there are %d", x.left,
					parts[x])
			}
		}
	}
	return nil
}

func (g *cargo) countQuiets(parts map[*quiet]int) {
	if g != nil {
		for _, x := range g.quiets {
			parts[x]++
		}
	}
}

// reached are the remotes of the peers that are open.
func (o *Origin) reached() map[*remote]bool {
	all := map[*remote]bool{}
	for p := range o.roster.all() {
		all[p.r] = true
	}
	return all
}

func (r *remote) countMarkers(parts map[*quiet]int) {
	for f := r.head; f != nil; f = f.next {
		if f.Verb == VerbFlush && f.ring == nil {
			parts[f.Context.(*quiet)]++
		}
	}
}
