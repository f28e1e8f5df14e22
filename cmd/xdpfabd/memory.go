// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/mr"
)

// allocate gets the memory of each region; of all or of none. Anonymous memory is
// populated, so that no operation of a peer waits for a page; that of memfds and
// files comes with its first use.
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
	}
	return mr.File(r.Backing, r.Size)
}

func free(mems []*mr.Memory) error {
	var errs []error
	for _, m := range mems {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
