// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// An operation that is too long for what engine and guest ring share is handed over part
// by part. It has three tags: its own, whose completion has its outcome, and two for
// parts, so that one can be filled while another one is on its way.

// ringStream is such an operation.
type ringStream struct {
	tag  uint32    // of the operation
	tags [2]uint32 // of parts
	out  [2]bool   // the host has a part under the tag
	over bool      // nothing more of it is handed over
}

// begin gives such an operation to the guest ring, and returns false if there was no
// room.
func (g *ringClient) begin(f *flight) bool {
	n := len(g.free) - 3
	if n < 0 {
		return false
	}
	of := &ringStream{tag: g.free[n+2], tags: [2]uint32{g.free[n], g.free[n+1]}}
	if !g.Begin(of.tag, f.by, &f.Submission) {
		return false
	}
	g.free = g.free[:n]
	g.parts[of.tag] = ringPart{f: f, of: of}
	f.pending, g.posted = 1, true
	g.fed = append(g.fed, of)
	g.more(of)
	return true
}

// feed hands over parts of the operations that have begun, until there is no room.
func (g *ringClient) feed() {
	for i := 0; i < len(g.fed); {
		of := g.fed[i]
		if g.more(of); !of.over {
			i++
		}
	}
}

// more hands over the next parts of an operation.
func (g *ringClient) more(of *ringStream) {
	f := g.parts[of.tag].f
	for i, tag := range of.tags {
		if of.out[i] || f.sent == f.elements() {
			continue
		}
		n := g.Feed(tag, of.tag, &f.Submission, uint32(f.sent))
		if n == 0 {
			return
		}
		g.parts[tag] = ringPart{f: f, of: of, first: uint32(f.sent)}
		of.out[i] = true
		f.sent += uint64(n)
		f.pending++
		g.posted = true
	}
	if f.sent == f.elements() {
		f.noted = true
		g.end(of)
	}
}

// end makes sure that nothing more of an operation is handed over.
func (g *ringClient) end(of *ringStream) {
	of.over = true
	g.fed = slices.DeleteFunc(g.fed, func(x *ringStream) bool { return x == of })
}

// fedPart is called with the completion of a part.
func (g *ringClient) fedPart(tag uint32, c *Completion, result []byte) {
	p := g.parts[tag]
	g.parts[tag] = ringPart{}
	p.of.out[slices.Index(p.of.tags[:], tag)] = false
	if c.Outcome == Success {
		place := int(p.first) * wire.ElemSize(p.f.Datatype)
		p.f.store(place, result[:min(len(result), max(p.f.resultLen()-place, 0))])
	}
	g.came(p.f, p.of)
}

// replace puts a stand-in in the place of such an operation.
func (g *ringClient) replace(of *ringStream, f, in *flight) {
	for _, tag := range append(of.tags[:], of.tag) {
		if g.parts[tag].f == f {
			g.parts[tag].f = in
		}
	}
}
