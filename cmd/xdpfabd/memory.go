// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/mr"
)

// allocate gets the memory of all regions, or of none. Anonymous memory is populated,
// so that no operation of a peer waits for a page; memfds and files get their pages
// when they are first used. Resident memory is made by the domain: until then it is nil.
func allocate(regions []RegionConfig) ([]*mr.Memory, error) {
	var mems []*mr.Memory
	for _, r := range regions {
		m, err := r.memory()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("region %q: %w", r.Name, err), free(mems))
		}
		mems = append(mems, m)
	}
	return mems, nil
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

// claimFiles marks the regions' files as served, and warns of those that another
// process serves too: nothing is lost, since the operations of both are atomic, but it
// is rarely intended. release takes the marks away; so does the end of the process.
func claimFiles(regions []RegionConfig, log *slog.Logger) (release func()) {
	var fds []int
	for _, r := range regions {
		if !r.isFile() {
			continue
		}
		fd, err := unix.Open(r.Backing, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // allocate opened it a moment ago: it was moved away since
		}
		fds = append(fds, fd)
		if errors.Is(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
			log.Warn("another process serves this file as well: both change the same memory", "region", r.Name, "file", r.Backing)
		}
	}
	return func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
}

func free(mems []*mr.Memory) error {
	var errs []error
	for _, m := range mems {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}
