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

// Service is a region of this node that peers can use.
type Service struct {
	// Region is the memory. Its methods give the owner its words, as variables of
	// sync/atomic, and its bytes. They must not be used once the domain is closed, which
	// unmaps the memory: the process would crash. End the goroutines that use them before
	// CloseAll. At a Pipe or a Network the memory stays as long as anything points to it.
	Region *mr.Region

	name  string
	close func() error // once
}

// Serve allocates zeroed memory of size bytes, and publishes it as a region under a name
// of 1 to 64 bytes. Peers can read and change it from then on. Serve does what NewRegion,
// NewEndpoint and Enable do together. All services of a domain share one endpoint. Its
// number is 0 unless that is taken, as it is on an interface that a daemon serves. Close
// ends the service.
//
// The error wraps mr.ErrName, if the name is empty, too long or not printable;
// mr.ErrNameInUse, if another open region has it; mr.ErrSize; mr.ErrMemory; or ErrDenied,
// by a rule of the daemon.
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

// Name returns the address at which peers dial the service: a MAC address, or with
// TransportUDP an IP address. Peers may use an IP address of the interface in place of
// the MAC address, unless DomainAttr.EthernetOnly is set.
func (s *Service) Name() string {
	if s == nil {
		return ""
	}
	return s.name
}

// Close withdraws the region. It waits for operations on the region that are under way;
// later ones fail. If the domain has another service, the peers of this one get
// ErrPeerRestarted from words that they have, and ErrNoRegion from a lookup. The last
// service of a domain takes the endpoint with it: its peers get ErrRefused, and a
// [Remote.Guard] ends with ErrPeerClosed. Closing twice is no error.
//
// The memory stays until the domain closes, as pointers into it may be in use. If there
// are none, Region.Memory().Close() frees it after Close.
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
