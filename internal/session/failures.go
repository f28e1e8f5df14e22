// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// Failures are the operations that a target has refused in requests that ran, by status,
// and the first of them. A question about a region that is not there is answered, not
// refused, and counted apart.
type Failures struct {
	By    [wire.NumStatuses]uint32
	Count uint32 // of all
	First wire.RefusedOp

	NotFound uint32         // questions about regions that are not there
	Sought   wire.RefusedOp // the first operation of a frame that failed, if it was such a question
}

// Note counts the failures in the payload of a response that has a status list. first
// describes the first of them; nil if nothing but its status is known.
func (r *Failures) Note(payload []byte, first *wire.RefusedOp) {
	wire.EachStatus(payload, func(s wire.Status) {
		if int(s) >= wire.NumStatuses { // as another program says that has executed the frame
			s = wire.StatusNotExecuted
		}
		if s == wire.StatusNotFound {
			if r.NotFound == 0 && first != nil && first.Status == s {
				r.Sought = *first
			}
			r.NotFound++
			return
		}
		if r.Count == 0 {
			if r.First = (wire.RefusedOp{Status: s}); first != nil && first.Status == s {
				r.First = *first
			}
		}
		r.By[s]++
		r.Count++
	})
}
