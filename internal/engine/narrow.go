// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/wire"

// sureFrame is maxFrame of a path of which nothing is known.
func (e *Engine) sureFrame(p *path) int {
	return min(e.maxFrame(p), wire.SureMTU-p.Kind().Overhead()-e.cfg.SealRoom)
}

// narrowed is called when long frames have not passed. The session goes on with short
// ones, and so do those after it, until one tries again.
func (c *conn) narrowed() {
	e := c.r.e
	e.count[PathsNarrow]++
	if e.cfg.Narrow != nil {
		e.cfg.Narrow(c.by.link, e.sureFrame(&c.path))
	}
}

// widened is called when long frames have passed after all.
func (c *conn) widened() {
	if e := c.r.e; e.cfg.Widened != nil {
		e.cfg.Widened(c.by.link)
	}
}
