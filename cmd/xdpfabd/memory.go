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
	kept  bool       // its memory was there before this daemon
	was   int64      // length of its file before that was extended, in bytes; negative unless it was
	lies  fileID     // its file, once that is claimed
	fd    int        // of that, likewise
}

// allocate gets the memory of all regions, or of none. Anonymous memory is populated,
// so that no operation of a peer waits for a page; memfds and files get their pages
// when they are first used. Resident memory is made by the domain: until then it is nil.
func allocate(regions []RegionConfig) ([]*region, error) {
	var list []*region
	for _, c := range regions {
		r := &region{RegionConfig: c}
		if err := r.allocate(); err != nil {
			return nil, errors.Join(fmt.Errorf("region %q: %w", c.Name, err), free(list))
		}
		list = append(list, r)
	}
	return list, nil
}

// allocate gets the region's memory, and looks first at what is there: the file is then
// as long as the region.
func (r *region) allocate() (err error) {
	var st unix.Stat_t
	r.was, r.kept = -1, r.isFile() && unix.Stat(r.Backing, &st) == nil
	if r.kept && st.Size < int64(r.Size) {
		r.was, r.kept = st.Size, st.Size > 0
	}
	r.mem, err = r.memory()
	return err
}

// contents says whether the region has what it had before this daemon, for the log.
func (r *region) contents() string {
	if r.kept {
		return "kept"
	}
	return "new"
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
		r.warnOfZeros(log)
		id, length, _ := r.file()
		r.lies, r.fd = id, r.mem.FD()
		if page := int64(os.Getpagesize()); length > (int64(r.Size)+page-1)/page*page && r.Size > 0 {
			log.Warn("file longer than its region: peers reach its beginning alone; leave out the region's "+
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

// warnOfZeros warns, once, of a file that the region has made longer.
func (r *region) warnOfZeros(log *slog.Logger) {
	at := []any{"region", r.Name, "size", r.Size, "file", r.Backing, "was", r.was}
	switch {
	case r.was > 0:
		log.Warn("file shorter than its region: it has zeros at its end now; leave out the region's size "+
			"to serve a file as it is", at...)
	case r.was == 0:
		log.Warn("file empty: its region has zeros now; if the file had contents, stop the daemon and "+
			"restore it", at...)
	}
	r.was = -1
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
