// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// on makes a domain that dials of the result of an open.
func on(d *fi.Domain, err error) (*xdpfab.Domain, error) {
	if err != nil {
		return nil, err
	}
	return &xdpfab.Domain{Domain: d}, nil
}

// openInfo opens what an info describes by a fabric of its own.
func openInfo(ctx context.Context, info *fi.Info, attr fi.DomainAttr) (*fi.Domain, error) {
	f, err := fi.NewFabric(attr)
	if err != nil {
		return nil, err
	}
	return f.OpenInfo(ctx, info, fi.DomainAttr{})
}

// ofFi makes a function for such a domain one for a domain of package fi.
func ofFi(f func(*xdpfab.Domain) error) func(*fi.Domain) error {
	return func(d *fi.Domain) error { return f(&xdpfab.Domain{Domain: d}) }
}

// callsOf is how many calls to a peer, by any of its uses, are under way or wait.
func callsOf(d *xdpfab.Domain, p *xdpfab.Peer) int {
	granted, waiting := d.Allotment(p.Addr()).Calls()
	return int(granted + waiting)
}
