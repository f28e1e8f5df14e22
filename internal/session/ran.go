// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// Ran describes which requests of a session have run at its target.
type Ran struct {
	PSN   uint32 // all requests up to this one
	Early uint64 // and later ones, in a session without order: bit i is PSN+2+i
	Torn  bool   // unknown: a frame ran in part
}

// Has reports whether request psn, which is in the window, has run.
func (r Ran) Has(psn uint32) bool {
	d := wire.Diff(psn, r.PSN)
	return d <= 0 || d >= 2 && r.Early>>(d-2)&1 != 0
}
