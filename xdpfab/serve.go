// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"errors"
	"fmt"
	"sync"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Service is memory that peers can use.
type Service struct {
	// Region is the memory. Its methods give the owner its words, as variables of
	// sync/atomic, and its bytes.
	Region *mr.Region

	name  string
	close func() error // once
}

// Serve allocates zeroed memory of size bytes and lets peers use it, with all rights,
// under a name of 1 to 64 bytes: it is short for NewRegion, NewEndpoint and Enable. All
// services of a domain have one endpoint, of number 0 unless that is taken, as it is on
// an interface that a daemon serves. Close ends the service.
//
// The error wraps mr.ErrName, for a name that is empty or too long; mr.ErrNameInUse, for
// that of another open region; mr.ErrSize; mr.ErrMemory; or, if the domain belongs to a
// daemon, ErrDenied.
func (d *Domain) Serve(region string, size int) (*Service, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	if region == "" {
		return nil, errno.Refuse(mr.ErrName,
			"xdpfab: service without a name: want that of the region, by which peers find it; NewRegion makes one "+
				"without")
	}
	name, err := d.entry.enter(d.Domain)
	if err != nil {
		return nil, err
	}
	r, err := d.NewRegion(region, size)
	if err != nil {
		return nil, errno.Join(err, d.entry.leave())
	}
	return &Service{Region: r, name: name, close: sync.OnceValue(func() error {
		return errno.Join(r.Close(), d.entry.leave())
	})}, nil
}

// Name returns the address that peers dial to reach the service, on its Ethernet segment
// or, with TransportUDP, by IP. An IP address of the interface in place of the MAC
// address will do too, unless DomainAttr.EthernetOnly is set.
func (s *Service) Name() string {
	if s == nil {
		return ""
	}
	return s.name
}

// Close withdraws the region: it waits for the operations on it that are under way, and
// later ones fail. With the last service of the domain the endpoint ends. Closing twice
// is no error.
func (s *Service) Close() error {
	if s == nil || s.close == nil {
		return none("Service", "Domain.Serve")
	}
	return s.close()
}

// entry is the endpoint that the services of a domain share.
type entry struct {
	mu       sync.Mutex
	endpoint *fi.Endpoint // nil if there is no service
	services int
}

// enter counts a service in, and returns the endpoint's name.
func (e *entry) enter(d *fi.Domain) (name string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.endpoint == nil {
		if e.endpoint, err = entrance(d); err != nil {
			return "", err
		}
	}
	e.services++
	return e.endpoint.Name(), nil
}

// leave counts a service out.
func (e *entry) leave() (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.services--; e.services == 0 {
		err = e.endpoint.Close()
		e.endpoint = nil
	}
	return err
}

// entrance returns an endpoint that peers can dial, by number 0 if it is free.
func entrance(d *fi.Domain) (*fi.Endpoint, error) {
	ep, err := d.NewEndpoint(EndpointAttr{})
	if errors.Is(err, ErrBusy) {
		ep, err = d.NewEndpoint(EndpointAttr{Number: fi.AnyNumber})
	}
	if err != nil {
		return nil, err
	}
	if err := ep.Enable(); err != nil {
		return nil, errno.Join(fmt.Errorf("xdpfab: service: %w", err), ep.Close())
	}
	return ep, nil
}
