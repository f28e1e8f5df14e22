// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sim

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Processes share memory on Linux alone, so no node has a guest here.

type guest struct{}

func (r *region) table() *mr.Table { return r.n.table }
func (r *region) copyForGuest()    {}
func (n *node) attach()            { n.w.plan.attends = 0 }
func (g *guest) attendTo()         {}
func (g *guest) detach()           {}
func (w *world) guestDeath(int64)  {}

func (n *node) attendant(uint16, wire.Addr, uint64) session.Attendant { return nil }
