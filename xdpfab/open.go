// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Domain is an interface in use: its queues, each with an engine, and the memory that
// peers may address. The methods of [fi.Domain] are its own: NewRegion and Register
// publish memory, NewEndpoint makes the endpoint that peers dial, CloseAll closes
// everything. Dial, Serve and NewMailbox are what the objects of libfabric lack.
type Domain struct {
	*fi.Domain

	entry entry // of its services
}

// DomainAttr are the attributes of a domain; the zero value is the defaults.
type DomainAttr = fi.DomainAttr

// EndpointAttr are the attributes of an endpoint; the zero value is the defaults.
type EndpointAttr = fi.EndpointAttr

// RemoteRegion is a region of a peer, as Peer.Lookup finds it. It can be sent in a
// message (MarshalBinary): [mr.Region.Remote] describes a region of the sender's own.
type RemoteRegion = fi.RemoteRegion

// Faults are what Domain.SetFaults lets the cable of a Pipe do to packets.
type Faults = fi.Faults

// Open puts an interface to use; the zero DomainAttr is the defaults. If a daemon serves
// the interface, the domain goes through the daemon, and needs no privilege: see
// DomainAttr.Attach. Otherwise it attaches the XDP program and opens a socket and an
// engine for each queue; the kernel keeps everything that is not addressed to xdpfab, and
// an interface can be opened by one domain at a time: ErrBusy.
//
// Without a daemon it needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_PERFMON, and
// CAP_IPC_LOCK or a sufficient limit of locked memory; the error names what is missing.
func Open(ctx context.Context, ifname string, attr DomainAttr) (*Domain, error) {
	f, err := fi.NewFabric(attr)
	if err != nil {
		return nil, err
	}
	return on(f.OpenDomain(ctx, ifname, DomainAttr{}))
}

// Pipe returns two domains joined by a cable in memory: no interface, no privilege, no
// kernel, but otherwise all of xdpfab. It is meant for tests and examples, like net.Pipe.
// Their addresses are a.Name(n) and b.Name(n). attr is for both, or one for each. A
// [Network] has more nodes, and restarts.
func Pipe(attr ...DomainAttr) (a, b *Domain, err error) {
	near, far, err := fi.Pipe(attr...)
	if err != nil {
		return nil, nil, err
	}
	return &Domain{Domain: near}, &Domain{Domain: far}, nil
}

// on makes a Domain of the result of an open.
func on(d *fi.Domain, err error) (*Domain, error) {
	if err != nil {
		return nil, err
	}
	return &Domain{Domain: d}, nil
}
