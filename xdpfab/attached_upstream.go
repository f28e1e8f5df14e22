// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// What the host does for an attached domain: see upstream.

func (a *attached) Carries() engine.Carrier { return a.carrier }

func (a *attached) MayHost() error { return node.IsGuest(a.Info().Name) }

func (a *attached) Allowed() (*share.Offer, bool) { return &a.terms, false }

// Number has the host make an endpoint. Targets know it by its identity, whichever the
// host.
func (a *attached) Number(x share.Endpoint) (number uint16, given bool, err error) {
	x.Serial = a.lives.Load() << serialShift
	return number, true, a.call(context.Background(), share.CallEndpoint, x, &number)
}

// serialShift leaves each host so many bits for the numbers of sessions.
const serialShift = 20

// Passive has the host make a passive endpoint.
func (a *attached) Passive(x share.Passive) (number uint16, given bool, err error) {
	return number, true, a.call(context.Background(), share.CallPassive, x, &number)
}

// Block has the host reserve the numbers of a scalable endpoint.
func (a *attached) Block(number, length int) (int, bool, error) {
	var first uint16
	err := a.call(context.Background(), share.CallBlock, share.Block{Number: number, Length: length}, &first)
	return int(first), true, err
}

// Unblock gives the numbers back to the host, which has none any more when it has ended.
func (a *attached) Unblock(number uint16) {
	_ = a.call(context.Background(), share.CallUnblock, number, nil)
}

func (a *attached) GiveBack(uint16, int) {}

// Serve makes an endpoint accept sessions, whose operations the host counts if tally
// returns where.
func (a *attached) Serve(s share.Serve, tally func() (int, error)) (err error) {
	if s.Tally, err = tally(); err != nil {
		return err
	}
	return a.call(context.Background(), share.CallServe, s, nil)
}

// Drop closes an endpoint at the host, which has none any more when it has ended. The end
// of the domain leaves it to regions that are kept.
func (a *attached) Drop(identity uint64, t *share.Tally) {
	verb := share.CallDrop
	if a.leaving.Load() {
		verb = share.CallLeave
	}
	_ = a.call(context.Background(), verb, identity, nil)
	a.free(t)
}

func (a *attached) Memory(name string, size int) (*mr.Memory, error) { return mr.Memfd(name, size) }

func (a *attached) Offers(kind mr.Kind) error {
	if kind != mr.KindMemfd {
		return fmt.Errorf("%v memory, which the daemon of %s cannot map: want memory that mr.Memfd returned: %w", kind, a.info.Name, errno.NotImplemented)
	}
	return nil
}

func (a *attached) Stay() func() {
	a.moving.RLock()
	return a.moving.RUnlock
}

func (a *attached) Look() { a.carrier.Tallies().Look() }

func (a *attached) CatchUp(on *node.Stepper) { on.Call(a.carrier.CatchUp) }

func (a *attached) Room() { a.carrier.Room() }

func (a *attached) Part() { a.leaving.Store(true) }

// Ask has the host ask for a connection.
func (a *attached) Ask(ctx context.Context, x share.Ask, answer *share.Answer) error {
	return a.listenFor(ctx, share.CallAsk, x, answer)
}

// Parted has the host end the sessions that a peer has to a connected endpoint, and
// accept no other.
func (a *attached) Parted(origin uint64) bool {
	var x share.Parted
	return a.call(context.Background(), share.CallPart, share.Part{Origin: origin, End: true}, &x) == nil && x.Met
}

func (a *attached) Deliver(to share.Receiver) { a.carrier.Deliver(to) }

func (a *attached) Beyond(*node.Node) (node.Beyond, int) { return node.Beyond{}, 0 }

func (a *attached) Cross(*node.Node, *engine.Engine) {}
