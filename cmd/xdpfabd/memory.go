// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/mr"
)

// region is a region that the daemon serves, or is about to.
type region struct {
	RegionConfig
	added bool       // by a command while the daemon runs, so no configuration names it
	mem   *mr.Memory // nil for resident memory that the domain has not made yet
	reg   *mr.Region // nil until it is registered
	was   int64      // length of its file before that was extended, in bytes; 0 unless it was
}

// allocate gets the memory of all regions, or of none. Anonymous memory is populated,
// so that no operation of a peer waits for a page; memfds and files get their pages
// when they are first used. Resident memory is made by the domain: until then it is nil.
func allocate(regions []RegionConfig) ([]*region, error) {
	var list []*region
	for _, c := range regions {
		was := c.shorter()
		m, err := c.memory()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("region %q: %w", c.Name, err), free(list))
		}
		list = append(list, &region{RegionConfig: c, mem: m, was: was})
	}
	return list, nil
}

// shorter returns the length of the region's file if that has something in it, and is to
// be extended; 0 if not.
func (r RegionConfig) shorter() int64 {
	var st unix.Stat_t
	if !r.isFile() || unix.Stat(r.Backing, &st) != nil || st.Size >= int64(r.Size) {
		return 0
	}
	return st.Size
}

func (r RegionConfig) memory() (*mr.Memory, error) {
	switch r.Backing {
	case backingAnonymous:
		return mr.Alloc(r.Size, mr.AllocOptions{Huge: r.Huge, Populate: true})
	case backingMemfd:
		return mr.Memfd("xdpfab:"+r.Name, r.Size)
	case backingResident:
		return nil, nil
	}
	return mr.File(r.Backing, r.Size)
}

// fileID tells a file from others, whatever its path is. It is zero for no file.
type fileID struct{ Dev, Ino uint64 }

func fileOf(st *unix.Stat_t) fileID { return fileID{st.Dev, st.Ino} }

// file returns the file in which the region lies, and the file's length in bytes.
func (r *region) file() (id fileID, length int64, err error) {
	var st unix.Stat_t
	if r.isFile() {
		err = unix.Fstat(r.mem.FD(), &st)
	}
	return fileOf(&st), st.Size, err
}

// claimFiles marks the regions' files as served, until they are freed, and warns of those
// that others serve too: another region, or another process. Nothing is lost, since the
// operations of both are atomic, but it is rarely intended. The end of the process takes
// the marks away as well.
func claimFiles(regions, others []*region, log *slog.Logger) {
	lies := map[fileID]string{}
	for _, r := range others { // by their paths: a command may be closing their memory
		var st unix.Stat_t
		if r.isFile() && unix.Stat(r.Backing, &st) == nil {
			lies[fileOf(&st)] = r.Name
		}
	}
	for _, r := range regions {
		if !r.isFile() {
			continue
		}
		if r.was > 0 {
			log.Warn("the file was shorter than its region, and has zeros at its end now; leave out the region's size "+
				"to serve a file as it is", "region", r.Name, "size", r.Size, "file", r.Backing, "was", r.was)
			r.was = 0
		}
		id, length, _ := r.file()
		if page := int64(os.Getpagesize()); length > (int64(r.Size)+page-1)/page*page && r.Size > 0 {
			log.Warn("the file is longer than its region: peers reach its beginning alone; leave out the region's "+
				"size to serve the whole file", "region", r.Name, "size", r.Size, "file", r.Backing, "length", length)
		}
		if first, taken := lies[id]; taken && first != r.Name {
			log.Warn("two regions have one file: they are the same memory, and operations on one change the other",
				"region", r.Name, "other", first, "file", r.Backing)
			continue
		}
		lies[id] = r.Name
		if errors.Is(unix.Flock(r.mem.FD(), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
			log.Warn("another process serves this file as well: both change the same memory", "region", r.Name,
				"file", r.Backing)
		}
	}
}

// unclaim ends the claims to files, for a next daemon.
func unclaim(regions []*region) {
	for _, r := range regions {
		if r.isFile() && r.mem != nil {
			_ = unix.Flock(r.mem.FD(), unix.LOCK_UN)
		}
	}
}

// free releases the memory of regions that no domain serves any longer.
func free(regions []*region) error {
	unclaim(regions)
	var errs []error
	for _, r := range regions {
		if r.mem != nil {
			errs = append(errs, r.mem.Close())
			r.mem = nil
		}
	}
	return errors.Join(errs...)
}
