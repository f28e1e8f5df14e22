// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
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

// promise keeps the regions as they are until release.
func (s *served) promise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.promises++
}

func (s *served) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.promises--
}

// errPromised says that the regions cannot change.
var errPromised = errors.New("another daemon takes this one's place: try again when it serves")

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

// given returns the regions that pass to a daemon that claims these: those that this one
// has too, and those that a command added. A region of one name must be the same in both.
func (s *served) given(claimed []legacyOf) (given []*region, err error) {
	for _, r := range s.all() {
		i := slices.IndexFunc(claimed, func(c legacyOf) bool { return c.Name == r.Name })
		if own := r.legacy(); i >= 0 && claimed[i] != own {
			return nil, fmt.Errorf("region %q is %+v here and %+v there: want the same, or another name, or stop "+
				"this daemon and start the other",
				r.Name, own, claimed[i])
		}
		if i >= 0 || r.added {
			given = append(given, r)
		}
	}
	return given, nil
}

// legacy describes the region to another daemon.
func (c *RegionConfig) legacy() legacyOf {
	return legacyOf{Name: c.Name, Size: c.Size, Access: c.Access, Backing: c.Backing, Huge: c.Huge}
}

// expect allocates the regions that the daemon will serve: those that the former one
// gives, whose memfds come from that one, and those of the configuration that it has not.
// files are those of the former: of each region that it gives, or none from an older
// release.
func (s *server) expect(promised []legacyOf, files []fileID) (given []*region, err error) {
	var configs []RegionConfig
	for _, l := range promised {
		c := RegionConfig{Name: l.Name, Size: l.Size, Access: l.Access, Backing: l.Backing, Huge: l.Huge}
		if own := s.cfg.region(l.Name); own != nil {
			c = *own
		}
		configs = append(configs, c)
	}
	for _, c := range s.cfg.Regions {
		if !slices.ContainsFunc(promised, func(l legacyOf) bool { return l.Name == c.Name }) {
			configs = append(configs, c)
		}
	}
	var list []*region
	for i, c := range configs {
		r := &region{RegionConfig: c, added: s.cfg.region(c.Name) == nil}
		switch {
		case i < len(promised) && c.Backing == backingMemfd:
		case i < len(promised) && c.isFile() && len(files) == len(promised):
			err = r.inherit(files[i])
		default:
			r.mem, err = c.memory()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("region %q: %w", c.Name, err), free(list))
		}
		list = append(list, r)
	}
	s.served.list = list
	return list[:len(promised)], nil
}

// keysFit reports an error unless the keys of the regions that the former daemon gives,
// which stay, are those that the configuration asks for, and no other region wants one.
func (c *Config) keysFit(promised []legacyOf, keys []uint64) error {
	if len(keys) != len(promised) { // an older release does not say
		return nil
	}
	for i, key := range keys {
		for _, r := range c.Regions {
			switch name := promised[i].Name; {
			case r.Key == nil:
			case r.Name == name && *r.Key != key:
				return fmt.Errorf("region %q has key %#x, which a takeover does not change, and %#x is wanted: want "+
					"that one, or none, or stop that daemon and start this one",
					name, key, *r.Key)
			case r.Name != name && *r.Key == key:
				return fmt.Errorf("region %q wants key %#x, which region %q of that daemon has and keeps: want "+
					"another key, or remove that region first",
					r.Name, key, name)
			}
		}
	}
	return nil
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
	}
	o := mr.Options{Name: r.Name, Key: r.Key, Length: r.Size, Access: r.Access}
	if before != nil {
		o.Key, o.Incarnation = &before.Key, before.Incarnation
	}
	if r.reg, err = h.Register(r.mem, o); err != nil {
		return fmt.Errorf("region %q: %w", r.Name, err)
	}
	return nil
}
