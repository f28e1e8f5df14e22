// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// Keep has a region, which must have a name, outlive the program. After the program has
// ended, in whatever way, or has closed the domain with CloseAll, the daemon keeps
// serving the region, by the endpoints that served it, with the same key, incarnation and
// contents. It does so until a program of the same user takes the region back,
// `xdpfab kept remove NAME` withdraws it, or the daemon ends. Closing the region
// withdraws it as usual.
//
// The domain must be a guest of a daemon: see DomainAttr.Attach. The daemon's rules bound
// what is kept; the error then wraps ErrDenied.
func (d *Domain) Keep(r *mr.Region) error {
	if err := d.there(); err != nil {
		return err
	}
	dev, is := d.node.Dev.(node.RegionKeeper)
	if !is {
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: keep region %v: the memory of a domain that has its interface itself ends with "+
				"its process: want a domain that is attached to a daemon (AttachAlways)", r)
	}
	defer d.stay()()
	if err := dev.Keep(r); err != nil {
		return fmt.Errorf("xdpfab: keep region %v: %w", r, err)
	}
	return nil
}

// TakeBack returns a region that a former program of the same user had kept, with its
// contents, key and incarnation, in memory that the domain frees when it closes. The
// region stays a kept one. The other regions and the serving endpoints that the former
// program left belong to the domain from then on: an endpoint that the domain makes with
// the number of such an endpoint continues its sessions, and peers notice nothing. So
// TakeBack comes before the domain has endpoints, dialled peers and regions.
//
// The error wraps ErrNotKept if there is no such region.
func (d *Domain) TakeBack(name string) (*mr.Region, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	dev, is := d.node.Dev.(node.RegionKeeper)
	if !is {
		return nil,
			errno.Refuse(ErrNotImplemented,
				"xdpfab: take region %q back: want a domain that is attached to a daemon (AttachAlways)",
				name)
	}
	defer d.stay()()
	r, err := d.takeBack(dev, name)
	if err != nil {
		return nil, fmt.Errorf("xdpfab: take back: %w", err)
	}
	return r, nil
}

func (d *Domain) takeBack(dev node.RegionKeeper, name string) (*mr.Region, error) {
	told, fd, err := dev.TakeBack(name)
	if err != nil {
		return nil, err
	}
	defer share.CloseAll([]int{fd})
	d.node.Mu.Lock()
	defer d.node.Mu.Unlock()
	if err := d.node.Open(); err != nil {
		return nil, err
	}
	m, err := mr.Shared(fd, math.MaxInt)
	if err != nil {
		return nil, err
	}
	r, err := d.node.Table.Register(m, mr.Options{Key: &told.Key, Access: mr.Access(told.Access), Name: told.Name,
		Offset: told.Offset, Length: told.Length,
		Virtual: told.Base != 0, Address: told.Base, AuthKey: told.AuthKey, Incarnation: told.Incarnation,
		Withdrawn: func() { d.node.Dev.Withdraw(told.Key) }})
	if err != nil {
		return nil, errno.Join(err, m.Close())
	}
	d.node.Owned = append(d.node.Owned, m)
	dev.Took(told, m)
	return r, nil
}
