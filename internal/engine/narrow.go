// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/wire"

// narrowFor is how long long frames are not tried again on a path that has dropped them,
// nanoseconds: as long as RFC 8899 keeps such knowledge.
const narrowFor = int64(600e9)

// sureFrame is maxFrame of a path of which nothing is known.
func (e *Engine) sureFrame(p *path) int {
	return min(e.maxFrame(p), wire.SureMTU-p.Kind().Overhead()-e.cfg.SealRoom)
}

// frame is the longest frame for a new session with the peer.
func (p *Peer) frame(now int64) int {
	if now < p.narrow {
		return p.origin.e.sureFrame(&p.path)
	}
	return p.origin.e.maxFrame(&p.path)
}

// narrowed is called when long frames have not passed. The session goes on with short
// ones, and so do those after it, for a while.
func (c *conn) narrowed(now int64) {
	e := c.r.e
	e.count[PathsNarrow]++
	c.by.narrow = now + narrowFor
	if e.cfg.Narrow != nil {
		e.cfg.Narrow(c.by.link, e.sureFrame(&c.path))
	}
}
