// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"slices"
	"sync"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/mr"
)

// served are the regions that the daemon serves. Commands change them, unless another
// daemon was told which they are.
type served struct {
	mu       sync.Mutex
	list     []*region // replaced, never changed
	promises int       // to daemons that want this one's place
}

// all returns the regions; the slice must not be changed.
func (s *served) all() []*region {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

// change replaces the list by another one that by returns.
func (s *served) change(by func(list []*region) ([]*region, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.promises > 0 {
		return errPromised
	}
	list, err := by(slices.Clone(s.list))
	if err == nil {
		s.list = list
	}
	return err
}

// region returns the configuration of a region, or nil.
func (c *Config) region(name string) *RegionConfig {
	for i := range c.Regions {
		if c.Regions[i].Name == name {
			return &c.Regions[i]
		}
	}
	return nil
}

// register gives peers access to the regions, and an endpoint to reach them by. Those
// that were regions before, by name, have the keys and incarnations that they had.
func (s *server) register(before map[string]legacyRegion) error {
	if err := s.authorize(s.served.all()); err != nil {
		return err
	}
	if err := s.canReside(); err != nil {
		return err
	}
	for _, r := range s.served.all() {
		var as *legacyRegion
		if b, was := before[r.Name]; was {
			as = &b
		}
		if err := r.register(s.host, as); err != nil {
			return err
		}
	}
	return s.host.Node().Serve(0)
}

// canReside refuses resident regions where --transport auto has come to UDP sockets.
func (s *server) canReside() error {
	why := s.host.Node().Dev.Info().NoXDP
	i := slices.IndexFunc(s.served.all(), func(r *region) bool { return r.Backing == backingResident })
	if why == "" || i < 0 {
		return nil
	}
	return errInterface(fmt.Errorf("region %q is resident, which takes AF_XDP, and --transport auto has come to UDP "+
		"sockets, because %s; correct that, or leave out resident", s.served.all()[i].Name, why))
}

// register registers the region, with the key and incarnation that it had before, if it
// was there. A node makes its resident memory itself.
func (r *region) register(h *host.Host, before *legacyRegion) (err error) {
	if r.Backing == backingResident {
		if r.mem != nil { // of the node before
			if err := r.mem.Close(); err != nil {
				return err
			}
			r.mem = nil
		}
		if r.mem, err = h.ResidentMemory(r.Name, r.Size); err != nil {
			return err
		}
		r.kept = h.WasLeft(r.mem)
	}
	o := mr.Options{Name: r.Name, Key: r.Key, Length: r.Size, Access: r.Access, AuthKey: r.auth}
	if before != nil {
		o.Key, o.Incarnation = &before.Key, before.Incarnation
	}
	if r.reg, err = h.Register(r.mem, o); err != nil {
		return fmt.Errorf("region %q: %w", r.Name, err)
	}
	return nil
}

type legacyRegion struct {
	Name        string
	Key         uint64
	Incarnation uint32
}
