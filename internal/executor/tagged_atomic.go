// SPDX-License-Identifier: Apache-2.0

package executor

import "github.com/xdpfab/xdpfab/internal/wire"

// combine runs the record of a tagged atomic, and returns false if the message has to
// wait. The answer says how it ended if the record is the last one of the frame; only
// such a record has anything to say.
func (s *Session) combine(m *wire.Message) bool {
	p, w := &s.partial, &s.x.response
	i := int(p.ops) - 1
	w.Reset(p.answer, int(p.ops))
	var result []byte
	if m.Atomic.Form != wire.VerbAtomic {
		if result = w.AppendValue(i, int(m.Length)); result == nil {
			w.AppendStatus(i, wire.StatusBadCount) // a result that cannot be sent must not arise
			p.n, p.said = w.Finish()
			return true
		}
	}
	if !s.inflow.Admit(m) {
		return false
	}
	if status := s.inflow.Combine(m, result); m.Tells() && status != wire.StatusOK {
		w.Reset(p.answer, int(p.ops))
		w.AppendStatus(i, status)
	}
	p.n, p.said = w.Finish()
	return true
}
