// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdpfab/xdpfab/internal/control"
)

// regionVerbs change the regions while the daemon serves.
func (s *server) regionVerbs() []control.Verb {
	return []control.Verb{{Name: "create-region", Do: s.createRegion}, {Name: "remove-region", Do: s.removeRegion}}
}

// mayChange reports an error unless the caller may change the regions: memory and files
// are the daemon's.
func mayChange(ctx context.Context) (uid uint32, err error) {
	caller, err := control.Caller(ctx)
	if err == nil && caller.UID != 0 && caller.UID != uint32(os.Geteuid()) {
		err = control.Denied("user %d: only root and the daemon's own user, %d, may change its regions; ask one "+
			"of them", caller.UID, os.Geteuid())
	}
	return caller.UID, err
}

// createRegion adds a region.
func (s *server) createRegion(ctx context.Context, arguments json.RawMessage) (any, error) {
	var a control.CreateRegion
	if err := json.Unmarshal(arguments, &a); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	uid, err := mayChange(ctx)
	if err != nil {
		return nil, err
	}
	c, err := parseRegion(a.Region)
	if err != nil {
		return nil, control.Wrong(err)
	}
	if found := (Config{Regions: []RegionConfig{c}}).validateRegions(); len(found) > 0 {
		return nil, control.Wrong(fmt.Errorf("%s: %s", strings.TrimPrefix(found[0].key, "region[0]."), found[0].text))
	}
	if c.isFile() && !filepath.IsAbs(c.Backing) {
		return nil, control.Wrong(fmt.Errorf("backing: %q: want an absolute path: the daemon's folder is another one",
			c.Backing))
	}
	if err := c.readKey(); err != nil {
		return nil, fmt.Errorf("auth-key: %w", err)
	}
	// Looked at first, so that a mistake leaves no file.
	if err := s.served.change(func(all []*region) ([]*region, error) { return all, clash(all, c) }); err != nil {
		return nil, err
	}
	list, err := allocate([]RegionConfig{c})
	if err != nil {
		return nil, err
	}
	r := list[0]
	r.added = true
	claimFiles(list, s.served.all(), s.log) // before a daemon that takes over can be told of the region
	err = s.served.change(func(all []*region) ([]*region, error) {
		if err := clash(all, c); err != nil {
			return nil, err
		}
		list := append(all, r)
		if err := s.authorize(list); err != nil {
			return nil, err
		}
		if err := r.register(s.host, nil); err != nil {
			return nil, errors.Join(err, s.authorize(all))
		}
		return list, nil
	})
	if err != nil {
		return nil, errors.Join(err, free(list))
	}
	if r.Backing == backingResident && s.host.Folder() == "" {
		s.log.Warn(endsWithDaemon, "region", r.Name)
	}
	r.tell(s.log, "region created", "by_uid", uid)
	s.notify(s.state())
	return r.describe(), nil
}

// clash reports an error if a region with the name or the key of another one is there.
func clash(all []*region, c RegionConfig) error {
	for _, x := range all {
		switch {
		case x.Name == c.Name:
			return fmt.Errorf("region %q is there already: want another name, or remove that one first", c.Name)
		case c.Key != nil && x.reg.Key() == *c.Key:
			return fmt.Errorf("region %q: key in use: region %q has %#x; want another one, or remove that region first",
				c.Name, x.Name, *c.Key)
		}
	}
	return nil
}

// removeRegion withdraws a region: its peers learn that it is gone, and its memory is
// freed. A file keeps its contents.
func (s *server) removeRegion(ctx context.Context, arguments json.RawMessage) (any, error) {
	var a control.RemoveRegion
	if err := json.Unmarshal(arguments, &a); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	uid, err := mayChange(ctx)
	if err != nil {
		return nil, err
	}
	var gone *region
	err = s.served.change(func(all []*region) ([]*region, error) {
		i := slices.IndexFunc(all, func(r *region) bool { return r.Name == a.Name })
		if i < 0 {
			return nil, fmt.Errorf("no region %q of this daemon: `xdpfab stat` lists those; one that a program left "+
				"is for `xdpfab kept remove`", a.Name)
		}
		gone = all[i]
		rest := slices.Delete(all, i, i+1)
		return rest, errors.Join(gone.reg.Close(), s.authorize(rest))
	})
	if err != nil {
		return nil, err
	}
	was := gone.describe()
	gone.tell(s.log, "region removed", "by_uid", uid)
	s.notify(s.state())
	return was, free([]*region{gone})
}
