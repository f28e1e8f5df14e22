// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/sharedav"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// AVAttr are the attributes of an address vector (struct fi_av_attr).
type AVAttr struct {
	// Name is that of an address vector which the processes of one user on one node
	// share (FI_SHARED_AV): what one of them inserts, all have under the same Address.
	// It has 1 to 64 letters, digits, dots, dashes and underscores. The first to open the
	// name makes the vector, and with its last user it is gone.
	Name string
	// ReadOnly opens a vector that another one has made, and refuses Insert and Remove
	// (FI_READ).
	ReadOnly bool
}

// open opens the table of a vector, and returns what the vector is called in messages.
func (a AVAttr) open(patience time.Duration) (*sharedav.Table, string, error) {
	switch {
	case a.Name == "" && a.ReadOnly:
		return nil, "",
			errno.Refuse(ErrNotImplemented,
				"xdpfab: address vector: read-only and without a name: want the name of one that there is")
	case a.Name == "":
		return nil, "address vector", nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t, err := sharedav.Open(ctx, a.Name, a.ReadOnly)
	if err != nil {
		return nil, "", fmt.Errorf("xdpfab: address vector %q: %w", a.Name, err)
	}
	return t, fmt.Sprintf("address vector %q", a.Name), nil
}

// unshare ends the use of the table, if the vector has one.
func (av *AddressVector) unshare() error {
	if av.shared == nil {
		return nil
	}
	return av.shared.Close()
}

// share adds an address to the table, if the vector has one, and returns its number
// there.
func (av *AddressVector) share(ctx context.Context, addr wire.Addr) (int, error) {
	if av.shared == nil {
		return 0, nil
	}
	n, err := av.shared.Append(ctx, addr.String())
	if err != nil {
		return 0, fmt.Errorf("xdpfab: %s: %w", av.what, err)
	}
	return n, nil
}

// unshareAddress removes an address from the table, if the vector has one.
func (av *AddressVector) unshareAddress(a Address) error {
	if av.shared == nil {
		return nil
	}
	if _, err := av.sharedAddress(a); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), av.dom.attr.GiveUp)
	defer cancel()
	if err := av.shared.Remove(ctx, int(a)); err != nil {
		return fmt.Errorf("xdpfab: %s: %w", av.what, err)
	}
	return nil
}

// sharedAddress reads an address from the table.
func (av *AddressVector) sharedAddress(a Address) (wire.Addr, error) {
	text, gone, err := av.shared.Get(int(a))
	switch {
	case errors.Is(err, sharedav.ErrNoRecord):
		return wire.Addr{}, fmt.Errorf("xdpfab: %s: %w: %w", av.what, ErrUnknownPeer, err)
	case err != nil:
		return wire.Addr{}, fmt.Errorf("xdpfab: %s: %w", av.what, err)
	case gone:
		return wire.Addr{}, fmt.Errorf("xdpfab: %s: address %d (%s) was removed: %w", av.what, a, text, ErrUnknownPeer)
	}
	addr, err := wire.ParseAddr(text)
	if err != nil {
		return addr, fmt.Errorf("xdpfab: %s: %w: %w", av.what, sharedav.ErrDamaged, err)
	}
	return addr, nil
}

// reach makes an entry of an address that another user of the vector has inserted, and
// looks up the way to it. An address that was removed meanwhile is refused.
func (av *AddressVector) reach(a Address) error {
	if av.shared == nil {
		return nil
	}
	a = Address(a.entry()) // whichever context is meant
	addr, err := av.sharedAddress(a)
	if err != nil {
		return err
	}
	if _, err := av.lookup(a); err == nil {
		return nil
	}
	ctx, stop := av.dom.during(context.Background())
	defer stop()
	_, link, err := av.dom.resolve(ctx, addr.String())
	if err != nil {
		return err
	}
	av.mu.Lock()
	defer av.mu.Unlock()
	av.cover(int(a))
	if e := &av.entries[a]; !e.known && !e.removed {
		*e = avEntry{addr: addr, link: link, known: true}
		av.learn(a)
	}
	return nil
}
