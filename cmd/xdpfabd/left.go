// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpfab/xdpfab/internal/resident"
)

// fitsLeft refuses to begin without a region that a former daemon has left in the folder
// of resident regions, or with one of its name that differs: its contents would be lost.
// It tells all of them at once.
func (c Config) fitsLeft(folder string) error {
	left, is := leftIn(folder)
	if !is {
		return nil // nothing to lose, or none of this daemon's business: opening says more
	}
	var errs []error
	for name, sizes := range left.Sizes {
		r, named := c.region(name), slices.Contains(left.Regions, name)
		switch {
		case r == nil && named:
			errs = append(errs, fmt.Errorf("region %q is in what a former daemon has left in %s, and this "+
				"configuration has no region of that name, which would destroy its contents: to go on with them, "+
				"add --region %s:resident (`xdpfab region remove %s`, after the start, ends that one alone); to begin "+
				"anew without any of that daemon's regions, end them with `xdpfab resident remove %s`",
				name, folder, regionOf(name, sizes[0]), name, folder))
		case r == nil || r.Backing == backingResident && slices.Contains(sizes, r.Size):
		default:
			errs = append(errs, differs(*r, sizes[0], folder))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// differs returns the error of a region that is in the way of one of its name, with
// another size in bytes or another backing, that was left in a folder.
func differs(r RegionConfig, is int, folder string) error {
	has, want := fmt.Sprintf("%d bytes", is), fmt.Sprintf("%d", r.Size)
	if r.Backing != backingResident {
		has, want = "resident memory", "backing "+r.Backing
	}
	return fmt.Errorf("region %q has %s in what a former daemon has left in %s, and this one wants %s, which "+
		"would destroy its contents: to go on with them, want %s:resident; to begin anew without any of that "+
		"daemon's regions, end them with `xdpfab resident remove %s`", r.Name, has, folder, want,
		regionOf(r.Name, is), folder)
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
	for _, name := range left.Regions { // fitsLeft has refused those that no region of this one goes on with
		notes = append(notes, fmt.Sprintf("region %q: goes on with what a former daemon has left in %s", name, folder))
	}
	return notes, nil
}

// regionOf is the beginning of --region for a region.
func regionOf(name string, size int) string { return name + "=" + sizeField(&size).String() }
