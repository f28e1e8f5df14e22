// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// What the host does for an attached domain: see upstream.

// GuestRing implements node.Upstream.
func (a *Attached) GuestRing() engine.GuestRing { return a.Ring }

// MayHost implements node.Upstream.
func (a *Attached) MayHost() error { return node.IsGuest(a.Info().Name) }

// Allowed implements node.Upstream.
func (a *Attached) Allowed() *share.Offer { return &a.terms }

// Number has the host make an endpoint. Targets know it by its identity, whichever the
// host.
func (a *Attached) Number(x share.Endpoint) (number uint16, given bool, err error) {
	x.Serial = a.lives.Load() << serialShift
	return number, true, a.Call(context.Background(), share.CallEndpoint, x, &number)
}

// serialShift leaves each host so many bits for the numbers of sessions.
const serialShift = 20

// Passive has the host make a passive endpoint.
func (a *Attached) Passive(x share.Passive) (number uint16, given bool, err error) {
	return number, true, a.Call(context.Background(), share.CallPassive, x, &number)
}

// Block has the host reserve the numbers of a scalable endpoint.
func (a *Attached) Block(number, length int) (int, bool, error) {
	var first uint16
	err := a.Call(context.Background(), share.CallBlock, share.Block{Number: number, Length: length}, &first)
	return int(first), true, err
}

// ReleaseNumbers gives the numbers back to the host, unless the host has ended.
func (a *Attached) ReleaseNumbers(number uint16) {
	_ = a.Call(context.Background(), share.CallUnblock, number, nil)
}

// GiveBack implements node.Upstream.
func (a *Attached) GiveBack(uint16, int) {}

// Serve makes an endpoint accept sessions, whose operations the host counts if tally
// returns where.
func (a *Attached) Serve(s share.Serve, tally func() (int, error)) (err error) {
	if s.Tally, err = tally(); err != nil {
		return err
	}
	return a.serve(s)
}

// Drop closes an endpoint at the host, unless the host has ended. When the domain ends,
// the endpoint stays with the regions that are kept.
func (a *Attached) Drop(identity uint64, t *share.Tally) {
	verb := share.CallDrop
	if a.leaving.Load() {
		verb = share.CallLeave
	}
	_ = a.Call(context.Background(), verb, identity, nil)
	a.free(t)
}

// Memory implements node.Upstream.
func (a *Attached) Memory(name string, size int) (*mr.Memory, error) { return mr.Memfd(name, size) }

// Offers implements node.Upstream.
func (a *Attached) Offers(kind mr.Kind) error {
	if kind == mr.KindResident || kind != mr.KindMemfd && !a.mayAttend() {
		return errno.Refuse(errno.NotImplemented,
			"%v memory, which the daemon of %s cannot map, and it has no feature "+
				"attended: want memory that mr.Memfd returned, or a later daemon", kind,
			a.info.Name)
	}
	return nil
}

// Stay implements node.Upstream.
func (a *Attached) Stay() func() {
	a.moving.RLock()
	return a.moving.RUnlock
}

// Look implements node.Upstream.
func (a *Attached) Look() { a.Ring.Tallies().Look() }

// CatchUp implements node.Upstream.
func (a *Attached) CatchUp(on *node.Stepper) { on.Call(a.Ring.CatchUp) }

// Room implements node.Upstream.
func (a *Attached) Room() { a.Ring.Room() }

// Part implements node.Upstream.
func (a *Attached) Part() { a.leaving.Store(true) }

// Ask has the host ask for a connection.
func (a *Attached) Ask(ctx context.Context, x share.Ask, answer *share.Answer) error {
	return a.listenFor(ctx, share.CallAsk, x, answer)
}

// Parted has the host end the sessions that a peer has to a connected endpoint, and
// accept no other.
func (a *Attached) Parted(origin uint64) bool {
	var x share.Parted
	return a.Call(context.Background(), share.CallPart, share.Part{Origin: origin, End: true}, &x) == nil && x.Met
}

// Deliver implements node.Upstream.
func (a *Attached) Deliver(to share.Receiver) { a.Ring.Deliver(to) }

// Cross implements node.Device.
func (a *Attached) Cross(*node.Node, *engine.Engine) {}
