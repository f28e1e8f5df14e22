// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

// Show has user space see all frames of the server's sessions, of those to come, too, and
// send the answers; or no longer. The program executes them still, by calls: that costs
// them some microseconds, and those of a server that is not shown nothing.
func (v *Server) Show(on bool) {
	v.shown = on
	for _, s := range v.x.sittingAt(v) {
		s.attend()
	}
}

// attended returns why user space has to see all frames of any session.
func (v *Server) attended() uint8 {
	if v.shown {
		return attendShown
	}
	return 0
}

// sittingAt returns the sessions of a server. They begin and end on its thread alone.
func (x *Executor) sittingAt(v *Server) (all []*Session) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.live {
		if s != nil && s.v == v {
			all = append(all, s)
		}
	}
	return all
}
