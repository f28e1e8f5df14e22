// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// flood has a session send a window of requests and acknowledge no answer. Early ones
// lack the first, so they have to be kept.
func (w *world) flood(x *target, early bool) {
	payload := make([]byte, 1400)
	var rw wire.RecordWriter
	rw.Reset(payload, len(payload))
	rw.Append(&wire.Record{Verb: wire.VerbFetch, Op: wire.OpRead, Datatype: 7, Key: 1, Count: 1})
	first, k := session.FirstPSN(x.epoch), uint32(0)
	if early {
		k = 1
	}
	for ; k < session.MaxWindow; k++ {
		h := wire.Header{Type: wire.Request, Epoch: x.epoch, PSN: first + k, Ack: first - 1, Ops: 1}
		x.receive(&h, payload[:rw.Len()])
	}
	x.e.settle()
}

// However many sessions strangers have whose answers pile up, an honest initiator still
// has a whole window of answers buffered at once, which is what its rate rests on; and a
// whole window of early requests. So its rate does not depend on strangers.
func TestWholeWindowBesideStrangers(t *testing.T) {
	const sessions = 1024 // of all strangers
	for _, sources := range []int{1, 8, 32} {
		for _, early := range []bool{false, true} {
			for _, first := range []bool{false, true} { // whether the honest one was there before
				t.Run(fmt.Sprintf("sources=%d,early=%t,first=%t", sources, early, first), func(t *testing.T) {
					w := quietWorld(t)
					serial := uint64(0)
					join := func(source int) *target {
						serial++
						src := wire.Source{Local: worldMACs[1], Remote: wire.MAC{2, 9}}
						binary.BigEndian.PutUint32(src.Remote[2:], uint32(source))
						m := wire.HelloMsg{Nonce: serial, Origin: serial, Session: uint32(serial), MaxFrame: 1500, Window: session.MaxWindow}
						x := w.accept(&wire.Header{}, &m, &src)
						if x == nil {
							t.Fatalf("session %d is refused", serial)
						}
						return x
					}
					var honest *target
					if first {
						honest = join(0)
					}
					for i := range sessions {
						w.flood(join(1+i%sources), early)
					}
					if !first {
						honest = join(0)
					}
					whole := session.MaxWindow
					if early {
						whole = session.MaxWindow - 1
					}
					usage := func() session.PoolUsage {
						if early {
							return w.exec.Usage().Holds
						}
						return w.exec.Usage().Answers
					}
					before := usage()
					if before.Lent < before.Limit-before.Lent {
						t.Errorf("strangers have %d buffers of %d: nothing is short", before.Lent, before.Limit)
					}
					w.flood(honest, early)
					if n := usage().Lent - before.Lent; n != whole {
						t.Errorf("%d buffers for an honest initiator, want %d: strangers have %d of %d", n, whole, before.Lent, before.Limit)
					}
				})
			}
		}
	}
}
