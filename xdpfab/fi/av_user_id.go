// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// SetUserID has completions name a peer by a value of the program's own, such as an index
// of its data, where they would name it by the address a (fi_av_set_user_id,
// FI_AV_USER_ID): Completion.Source is id then. Posts go on using a. It holds for
// completions that are read from now on, in this process, until a is removed. An entry of
// a shared vector can have a user ID once this process has used it.
func (av *AddressVector) SetUserID(a, id Address) error {
	if a.context() != 0 {
		return fmt.Errorf("xdpfab: user ID of address %#x, of receive context %d: want the address of the endpoint: %w",
			uint32(a), a.context(), ErrUnknownPeer)
	}
	if err := av.ended(); err != nil {
		return err
	}
	if _, err := av.lookup(a); err != nil {
		return err
	}
	av.mu.Lock()
	defer av.mu.Unlock()
	e := &av.entries[a]
	e.userID, e.named = id, true
	av.latest = sourceName{}
	return nil
}

// sourceName is what completions call an endpoint. Messages mostly come from the endpoint
// from which the one before came.
type sourceName struct {
	from  wire.Addr
	name  Address
	known bool
}

// source returns what completions call an endpoint: its user ID, its address, or
// NoAddress.
func (av *AddressVector) source(from wire.Addr) Address {
	av.mu.Lock()
	defer av.mu.Unlock()
	if !av.latest.known || av.latest.from != from {
		av.latest = sourceName{from, av.nameOf(from), true}
	}
	return av.latest.name
}

// nameOf is source for an endpoint that is not the latest one. av.mu is held.
func (av *AddressVector) nameOf(from wire.Addr) Address {
	a, ok := av.index[from]
	if !ok {
		return NoAddress
	}
	if e := &av.entries[a]; e.named {
		return e.userID
	}
	return a
}
