// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

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

// errPromised means that the regions cannot change.
var errPromised = errors.New("another daemon takes this one's place: try again when it serves")

// given returns the regions that pass to a daemon that claims these: those that this one
// has too, and those that a command added. A region of one name must be the same in both.
func (s *served) given(claimed []legacyOf) (given []*region, err error) {
	for _, r := range s.all() {
		i := slices.IndexFunc(claimed, func(c legacyOf) bool { return c.Name == r.Name })
		if own := r.legacy(); i >= 0 && !own.same(claimed[i]) {
			has, wants := own.unlike(claimed[i])
			remedy := "makes the region anew"
			if claimed[i].Auth = own.Auth; own.same(claimed[i]) {
				remedy = "changes the key, and keeps the contents with leave = true"
			}
			return nil, fmt.Errorf("region %q has %s in the daemon that serves, and %s in the one that is to take "+
				"its place: want the same, or another name; a restart in place of a takeover %s", r.Name, has, wants,
				remedy)
		}
		if i >= 0 || r.added {
			given = append(given, r)
		}
	}
	return given, nil
}

// legacy describes the region to another daemon.
func (c *RegionConfig) legacy() legacyOf {
	return legacyOf{Name: c.Name, Size: c.Size, Access: c.Access, Backing: c.Backing, Huge: c.Huge,
		AuthKey: c.AuthKey, Auth: c.auth.digest()}
}

// same reports whether the region can be the other daemon's too. That one may have
// another authorization key for it, but not for one whose sessions the XDP program
// executes on: it knows them by the key.
func (l legacyOf) same(other legacyOf) bool {
	if l.AuthKey, other.AuthKey = "", ""; l.Backing != backingResident {
		l.Auth, other.Auth = "", ""
	}
	return l == other
}

// keysKept reports an error if the next daemon would serve a region without the
// authorization key that it has: an older release does not know of such keys.
func keysKept(given []*region, c *claim) error {
	for _, r := range given {
		if len(r.auth) > 0 && !c.AuthKeys {
			return fmt.Errorf("region %q has an authorization key, which release %s does not know: remove the region "+
				"first with `xdpfab region remove %s`, or stop this daemon and start the other", r.Name, c.Release,
				r.Name)
		}
	}
	return nil
}

// expect allocates the regions that the daemon will serve: those that the former one
// gives, whose memfds come from that one, and those of the configuration that it has not.
// files are those of the former: of each region that it gives, or none from an older
// release.
func (s *server) expect(promised []legacyOf, files []fileID) (given []*region, err error) {
	var configs []RegionConfig
	for _, l := range promised {
		c := RegionConfig{Name: l.Name, Size: l.Size, Access: l.Access, Backing: l.Backing, Huge: l.Huge,
			AuthKey: l.AuthKey}
		if own := s.cfg.region(l.Name); own != nil {
			c = *own
		} else if err := c.readKey(); err != nil {
			return nil, fmt.Errorf("region %q: auth-key: %w", c.Name, err)
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
		r := &region{RegionConfig: c, added: s.cfg.region(c.Name) == nil, was: -1}
		switch {
		case i < len(promised) && c.Backing == backingMemfd:
		case i < len(promised) && c.isFile() && len(files) == len(promised):
			err = r.inherit(files[i])
		default:
			err = r.allocate()
		}
		r.kept = r.kept || i < len(promised)
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

// inherit opens the region's file, which has to be the one in which the former daemon has
// it. It looks before it opens, since opening makes or extends a file.
func (r *region) inherit(want fileID) (err error) {
	if err = r.isAt(want); err != nil {
		return err
	}
	if r.mem, err = r.memory(); err != nil {
		return err
	}
	is, _, err := r.file()
	if err == nil && is == want {
		return nil
	}
	err = errors.Join(err, r.mem.Close())
	r.mem = nil
	return r.notThere(err)
}

// isAt reports an error unless a file is at the region's path.
func (r RegionConfig) isAt(want fileID) error {
	var st unix.Stat_t
	if err := unix.Stat(r.Backing, &st); err != nil || fileOf(&st) != want {
		return r.notThere(err)
	}
	return nil
}

// notThere is the error of a path that leads to no file of the former daemon.
func (r RegionConfig) notThere(err error) error {
	if err == nil {
		err = errors.New("another file is there")
	}
	return fmt.Errorf("%s is not the file that the daemon serves: %w; move that one back, or remove the region "+
		"first with `xdpfab region remove %s`, or stop that daemon and start this one", r.Backing, err, r.Name)
}
