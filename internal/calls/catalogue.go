// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Region is an entry of a peer's catalogue. Its fields are those of the public
// RemoteRegion.
type Region struct {
	Name        string
	Key         uint64
	Size        uint64
	Base        uint64
	Access      mr.Access
	Incarnation uint32
	Keyed       bool
}

// LooksUp reports whether an operation asks for the catalogue, and so changes nothing:
// one without an answer counts as not executed.
func LooksUp(v wire.Verb) bool { return v == wire.VerbLookup || v == wire.VerbList }

// Lookup finds a region by the name under which it is published.
func (p *Peer) Lookup(ctx context.Context, name string) (Region, error) {
	if len(name) == 0 || len(name) > wire.MaxNameLen {
		return Region{}, errno.Unsent(errno.Also(errno.Refuse(errno.Length,
			"xdpfab: region name of %d bytes: want the name that the peer published, 1 to %d bytes long; Peer.Regions "+
				"lists them", len(name), wire.MaxNameLen), errno.Argument))
	}
	r, _, err := p.entry(ctx, Call{Verb: wire.VerbLookup, Count: uint32(len(name)), Operand: []byte(name)})
	return r, err
}

// Entry returns the entry of the catalogue at an index, and the number of entries.
func (p *Peer) Entry(ctx context.Context, index int) (Region, uint32, error) {
	return p.entry(ctx, Call{Verb: wire.VerbList, Count: uint32(index)})
}

// entry asks for one catalogue entry. It also returns the number of entries. The session
// may be one with a process that has ended, which the question then finds out. Since it
// changes nothing, it is asked once more, of the present process, unless it is one of a
// list that has begun: a list is that of one process.
func (p *Peer) entry(ctx context.Context, c Call) (Region, uint32, error) {
	var (
		b [wire.EntryLen]byte
		e wire.Entry
	)
	c.Result = b[:]
	err := p.Do(ctx, c)
	if begun := c.Verb == wire.VerbList && c.Count > 0; !begun && p.Poster.Stale(err) {
		err = p.Do(ctx, c)
	}
	if err != nil {
		return Region{}, 0, err
	}
	if r := e.Parse(b[:]); r != wire.ReasonOK {
		return Region{}, 0, fmt.Errorf("xdpfab: %s: catalogue entry: %v: %w", p.Name, r, errno.Protocol)
	}
	return Region{Name: e.NameString(), Key: e.Key, Size: e.Size, Base: e.Base,
		Access: mr.Access(e.Access &^ wire.AccessKeyed), Incarnation: e.Incarnation,
		Keyed: e.Access&wire.AccessKeyed != 0}, e.Total, nil
}
