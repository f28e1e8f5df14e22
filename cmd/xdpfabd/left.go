// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/internal/resident"
)

// fitsLeft refuses to begin with a region that differs from one of its name which a
// former daemon has left in the folder of resident regions: its contents would be lost.
func (c Config) fitsLeft(folder string) error {
	left, is := leftIn(folder)
	if !is {
		return nil // nothing to lose, or none of this daemon's business: opening says more
	}
	for _, r := range c.Regions {
		sizes := left.Sizes[r.Name]
		if len(sizes) == 0 || r.Backing == backingResident && slices.Contains(sizes, r.Size) {
			continue
		}
		is := sizes[0]
		has, want := fmt.Sprintf("%d bytes", is), fmt.Sprintf("%d", r.Size)
		if r.Backing != backingResident {
			has, want = "resident memory", "backing "+r.Backing
		}
		return fmt.Errorf("region %q has %s in what a former daemon has left in %s, and this one wants %s, which "+
			"would destroy its contents: to go on with them, want %s:resident; to begin anew without any of that "+
			"daemon's regions, end them with `xdpfab resident remove %s`", r.Name, has, folder, want,
			regionOf(r.Name, is), folder)
	}
	return nil
}

// leftIn returns the resident regions that a former daemon has left in a folder, and that
// the kernel serves; false for none.
func leftIn(folder string) (left resident.Left, is bool) {
	if folder == "" {
		return left, false
	}
	all, err := resident.List(folder)
	if err != nil || len(all) != 1 || all[0].InUse || !all[0].Whole {
		return left, false
	}
	return all[0], true
}

// previewLeft says what becomes of the resident regions that a former daemon has left.
// The error is one for which a start would be refused.
func (c Config) previewLeft(folder string) (notes []string, err error) {
	if err := c.fitsLeft(folder); err != nil {
		return nil, err
	}
	left, _ := leftIn(folder)
	for _, name := range left.Regions {
		if c.region(name) != nil {
			notes = append(notes, fmt.Sprintf("region %q: goes on with what a former daemon has left in %s", name,
				folder))
			continue
		}
		notes = append(notes, fmt.Sprintf("region %q, which a former daemon has left in %s, ends, and its contents "+
			"are lost: add it to the configuration to keep it", name, folder))
	}
	return notes, nil
}

// regionOf is the beginning of --region for a region.
func regionOf(name string, size int) string { return name + "=" + sizeField(&size).String() }
