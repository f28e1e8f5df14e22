// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/session"

// Usage is the room that an engine has in use.
type Usage struct {
	Requests session.PoolUsage // buffers for requests in flight
	Sessions int               // of both roles
	Limit    int               // most sessions that there may be
	Accepted int               // of them, those that peers asked for
	Parties  int               // that have accepted sessions
}

// Usage returns the room that the engine has in use. Engine's thread only.
func (e *Engine) Usage() Usage {
	return Usage{Requests: e.reqs.Usage(), Sessions: len(e.table.all), Limit: e.cfg.Sessions, Accepted: e.accepted,
		Parties: len(e.parties)}
}
