// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A peer whose operation waits for its next part costs no round anything. It is looked
// at again when the part comes, or when the operation ends, and then what is behind it
// goes, too.
func TestStarvedStreamIsParked(t *testing.T) {
	part := func(n uint32) *Part { return &Part{Count: n, Operand: make([]byte, 8*n)} }
	for name, end := range map[string]func(c *cable, p *Peer, s *Stream, r *outcomes) Outcome{
		"the rest comes": func(_ *cable, _ *Peer, s *Stream, _ *outcomes) Outcome {
			s.Feed(part(1))
			s.Feed(part(2))
			return Success
		},
		"it is let go": func(_ *cable, p *Peer, _ *Stream, r *outcomes) Outcome {
			p.Cancel(r)
			return Unknown
		},
		"the target refuses it": func(c *cable, _ *Peer, s *Stream, _ *outcomes) Outcome {
			if err := c.nodes[1].region.Close(); err != nil {
				c.t.Fatal(err)
			}
			s.Feed(part(1))
			return Unknown
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{})
			p, e := c.peer(ethernet()), c.nodes[0].eng[0]
			c.write(p, 0, 7)
			s, r := &Stream{}, &outcomes{}
			op := c.nodes[0].ring.Claim()
			op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), r, 1, 64, 4
			op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbAtomic, uint8(atomic.Write), uint8(atomic.Uint64), 0
			op.Result = nil
			op.SetOperands(nil, nil)
			op.SetStream(s)
			op.Publish()
			next := c.post(p, 1, 9)
			parked := func() {
				t.Helper()
				c.idle(100 * time.Millisecond)
				if len(e.ready) != 0 || len(e.starved) != 1 || len(r.all)+len(next.all) > 0 {
					t.Fatalf("%d peers have something to pack, %d wait for a part; %+v, %+v", len(e.ready), len(e.starved), r, next)
				}
			}
			parked()
			s.Feed(part(1))
			parked()
			want := end(c, p, s, r)
			if got := c.done(r); got.Outcome != want && !(want == Unknown && got.Outcome == NotExecuted) {
				t.Errorf("%+v, want fate %v", got, want)
			}
			if got := c.done(next); (got.Outcome == Success) != (name != "the target refuses it") {
				t.Errorf("the operation behind it: %+v", got)
			}
			if c.idle(100 * time.Millisecond); len(e.ready)+len(e.starved) != 0 {
				t.Errorf("%d peers have something to pack, %d wait for a part", len(e.ready), len(e.starved))
			}
		})
	}
}
