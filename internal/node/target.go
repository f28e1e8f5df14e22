// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// target is the tenant of a number by which peers reach the node's regions, and nothing
// else. Each region may have a key of its own, so there may be several.
type target struct{ n *Node }

// keys are those with which peers may begin sessions: those of Authorize, and none.
func (t target) keys() session.Keys {
	if keys := t.n.targetKeys.Load(); keys != nil {
		return *keys
	}
	return nil
}

func (target) Serves() bool { return true }

func (target) Admit(uint64) wire.HelloStatus { return wire.HelloAccepted }

func (target) Requested(*wire.Connection, wire.Addr, int64) (wire.HelloStatus, wire.Connection) {
	return wire.HelloNoEndpoint, wire.Connection{}
}

func (target) SessionKey() *session.Key { return nil }

func (target) EventsTo() engine.Events { return nil }

func (target) Inflow(wire.Addr) session.Inflow { return nil }

func (target) Begin(*executor.Executor, int, int64, session.TargetParams) engine.Served { return nil }

func (target) MayReside() bool { return true }

func (target) IsTarget() bool { return true }

// Serve has peers reach the node's regions by an endpoint of a number, until EndServing.
func (n *Node) Serve(number int) error {
	at, err := n.Numbers.Take(number, false, nil)
	if err != nil {
		return err
	}
	n.Numbers.Put(at, target{n})
	return nil
}

// MostKeys is how many different keys there are at most, since each hello with a proof is
// compared with all of them.
const MostKeys = 16

// Authorize has peers begin sessions with any of these keys of regions, or without one,
// by the numbers of Serve. Sessions that have begun with another key last, but find no
// region with it.
func (n *Node) Authorize(keys [][]byte) error {
	all := session.Keys{nil}
	for _, k := range keys {
		key, err := n.Session(k)
		if err != nil {
			return fmt.Errorf("xdpfab: %w", err)
		}
		known := slices.ContainsFunc(all, func(other *session.Key) bool { return other.ID() == key.ID() })
		if !known {
			all = append(all, key)
		}
	}
	if len(all)-1 > MostKeys {
		return fmt.Errorf("xdpfab: %d different authorization keys: want at most %d", len(all)-1, MostKeys)
	}
	n.targetKeys.Store(&all)
	return nil
}

// EndServing takes back all numbers of Serve, and ends the sessions that peers have with
// them.
func (n *Node) EndServing() {
	n.Numbers.Each(func(number uint16, t Tenant) {
		if n.Numbers.Drop(number, target{n}) {
			n.EndTargets(number)
		}
	})
}
