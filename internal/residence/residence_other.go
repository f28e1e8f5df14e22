// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package residence

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/mr"
)

// errLinux is why there is no resident memory.
var errLinux = fmt.Errorf("resident memory takes Linux, this is %s: %w", runtime.GOOS, errno.NotImplemented)

// Store is that of resident memory, which takes an XDP program and so Linux: always nil.
type Store struct{}

// Residence is what a node has of resident memory: none.
type Residence struct {
	n       *node.Node
	Counted tallies
}

type tallies struct{}

// Drop does nothing.
func (tallies) Drop(any) {}

// New gives a node its Residence.
func New(n *node.Node, _ *Store) *Residence {
	h := &Residence{n: n}
	n.Residents = h
	return h
}

// Of returns that of a node.
func Of(n *node.Node) *Residence { return n.Residents.(*Residence) }

// Start puts the node's engines to work, or releases the node. life is that of the node
// whose place this one takes, paused until Resume; 0 for none.
func (h *Residence) Start(life uint64) error {
	h.n.Paused.Store(life != 0)
	if err := h.n.Run(cmp.Or(life, node.NewLife()), 0); err != nil {
		return errors.Join(err, h.n.Release())
	}
	return nil
}

// SettleIn fails: a former process left nothing.
func (h *Residence) SettleIn() error { return errLinux }

// ResidentMemory fails.
func (h *Residence) ResidentMemory(string, int) (*mr.Memory, error) { return nil, errLinux }

// WasLeft reports false.
func (h *Residence) WasLeft(*mr.Memory) bool { return false }

// ObserveProgram fails.
func (h *Residence) ObserveProgram(uint64, any) error { return errLinux }

// Longest returns 0: no session could become resident.
func (h *Residence) Longest(*session.TargetParams) int { return 0 }

// Pads reports false: no program answers in place.
func (h *Residence) Pads() bool { return false }

// Migratable returns a session that stays where it is.
func (h *Residence) Migratable(x *executor.Executor, _ int, now int64, p session.TargetParams) engine.Served {
	return x.Begin(now, p, nil)
}

// Register fails.
func (h *Residence) Register(*mr.Memory, mr.Options) (*mr.Region, error) { return nil, errLinux }

// Look does nothing.
func (h *Residence) Look() {}

// Show does nothing.
func (h *Residence) Show(bool) {}

// Count adds nothing.
func (h *Residence) Count(map[string]uint64) error { return nil }

// GoOn does nothing.
func (h *Residence) GoOn() {}

// Detach does nothing.
func (h *Residence) Detach() {}

// End does nothing.
func (h *Residence) End() error { return nil }
