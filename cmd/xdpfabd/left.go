// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/resident"
	"github.com/xdpfab/xdpfab/mr"
)

// fitsLeft refuses to begin with a region that differs from one of its name which a
// former daemon has left in the folder of resident regions, or without one that has an
// authorization key, which only a configuration can name: the contents would be lost. It
// tells all of them at once. Nor may a region have the key of one that goes on: it would
// get the requests of that one's peers. Nor is what this daemon is to leave begun without
// a place for it.
func (c Config) fitsLeft(left resident.Left) error {
	if err := c.mayLeave(); err != nil {
		return err
	}
	var errs []error
	for name, sizes := range left.Sizes {
		r := c.region(name)
		if r == nil || r.Backing == backingResident && slices.Contains(sizes, r.Size) {
			continue
		}
		errs = append(errs, differs(*r, sizes[0], left.Folder))
	}
	for _, r := range left.Registered {
		name, own := r.Name.Name, c.region(r.Name.Name)
		if r.Auth != 0 && own == nil {
			errs = append(errs, unknownAuth(r, left.Folder))
		}
		i := slices.IndexFunc(c.Regions, func(o RegionConfig) bool {
			return o.Key != nil && *o.Key == r.Key && o.Name != name
		})
		if i >= 0 && (own == nil || own.Key == nil) {
			errs = append(errs, fmt.Errorf("region %q wants key %#x, which region %q has in what a former daemon has "+
				"left in %s, and keeps: want another key, or end the regions of that daemon with `xdpfab resident "+
				"remove %s`", c.Regions[i].Name, r.Key, name, left.Folder, left.Folder))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// unnamed returns the resident regions that a former daemon has left and that this
// configuration does not name, because a command added them or because the name is
// misspelt. They go on, as in a takeover: a death destroys no contents, and a daemon that
// is started again after it starts.
func (c Config) unnamed(left resident.Left) (more []RegionConfig) {
	for _, r := range left.Registered {
		same := func(o RegionConfig) bool { return o.Name == r.Name.Name }
		if r.Name.Name == "" || c.region(r.Name.Name) != nil || slices.ContainsFunc(more, same) {
			continue
		}
		more = append(more, RegionConfig{Name: r.Name.Name, Size: r.Length, Access: mr.Access(r.Access),
			Backing: backingResident})
	}
	slices.SortFunc(more, func(a, b RegionConfig) int { return strings.Compare(a.Name, b.Name) })
	return more
}

// unknownAuth returns the error of a region that was left in a folder, with an
// authorization key, and that no configuration names.
func unknownAuth(r resident.Region, folder string) error {
	name := r.Name.Name
	return fmt.Errorf("region %q is in what a former daemon has left in %s, with an authorization key, and this "+
		"configuration has no region of that name, which would destroy its contents: to go on with them, add --region "+
		"%s,auth-key=FILE (`xdpfab region remove %s`, after the start, ends that one alone); to begin anew without "+
		"any of that daemon's regions, end them with `xdpfab resident remove %s`",
		name, folder, residentOf(name, r.Length, mr.Access(r.Access)), name, folder)
}

// allocateWith gets the memory of the configured regions, and of those that a former
// daemon has left besides.
func (c Config) allocateWith(more []RegionConfig) ([]*region, error) {
	list, err := allocate(slices.Concat(c.Regions, more))
	for _, r := range list[min(len(list), len(c.Regions)):] {
		r.added = true
	}
	return list, err
}

// tellAdded logs which regions go on without being in the configuration.
func tellAdded(list []*region, log *slog.Logger) {
	for _, r := range list {
		if r.added {
			log.Warn("resident region of the former daemon goes on, and the configuration does not name it", "region",
				r.Name, "remedy", fmt.Sprintf("add --region %s, or end it with `xdpfab region remove %s`",
					residentOf(r.Name, r.Size, r.Access), r.Name))
		}
	}
}

// differs returns the error of a region that is in the way of one of its name, with
// another size in bytes or another backing, that was left in a folder.
func differs(r RegionConfig, is int, folder string) error {
	has, want := fmt.Sprintf("%d bytes", is), fmt.Sprintf("%d", r.Size)
	if r.Backing != backingResident {
		has, want = "resident memory", "backing "+r.Backing
	}
	return fmt.Errorf("region %q has %s in what a former daemon has left in %s, and this one wants %s, which "+
		"would destroy its contents: to go on with them, want %s; to begin anew without any of that daemon's regions, "+
		"end them with `xdpfab resident remove %s`",
		r.Name, has, folder, want, residentOf(r.Name, is, r.Access), folder)
}

// leftPatience is how long a folder may seem to be another process's.
const leftPatience = time.Second

// leftIn returns the resident regions that a former daemon has left in a folder, and that
// the kernel serves, or none. If the folder stays another process's for so long, they are
// that one's.
func leftIn(folder string, patience time.Duration) resident.Left {
	if folder == "" {
		return resident.Left{}
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		all, err := resident.List(folder)
		if err != nil || len(all) != 1 || !all[0].Whole { // as when its interface is gone
			return resident.Left{} // nothing to lose, or none of this daemon's business: opening says more
		}
		if !all[0].InUse || time.Now().After(end) {
			return all[0]
		}
	}
}

// residentOf is the value of --region for a resident region.
func residentOf(name string, size int, access mr.Access) string {
	text := name + "=" + sizeField(&size).String() + ":resident"
	switch access {
	case mr.RemoteRead:
		text += ",ro"
	case mr.RemoteWrite:
		text += ",wo"
	}
	return text
}
