// SPDX-License-Identifier: Apache-2.0

package node

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// target is the tenant of a number by which peers reach the node's regions, and nothing
// else.
type target struct{}

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
	n.Numbers.Put(at, target{})
	return nil
}

// EndServing takes back all numbers of Serve, and ends the sessions that peers have with
// them.
func (n *Node) EndServing() {
	n.Numbers.Each(func(number uint16, t Tenant) {
		if n.Numbers.Drop(number, target{}) {
			n.EndTargets(number)
		}
	})
}
