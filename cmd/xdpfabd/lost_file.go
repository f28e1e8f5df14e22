// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// moved says what is at the path of the region's file, if not the file that is served;
// empty otherwise, and while this process cannot tell. It looks at no memory, which a
// command may be closing.
func (r *region) moved() string {
	var st unix.Stat_t
	switch err := unix.Stat(r.Backing, &st); {
	case !r.isFile() || r.lies == (fileID{}):
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return "no file is there"
	case err == nil && fileOf(&st) != r.lies:
		return "another file is there"
	}
	return ""
}

// missFiles warns once of each region whose file somebody has removed or replaced: peers
// change a file that no path leads to. missed has those that it has warned of.
func (s *server) missFiles(missed map[*region]bool) {
	for _, r := range s.served.all() {
		cause := r.moved()
		if gone := cause != ""; gone != missed[r] {
			if missed[r] = gone; gone {
				s.log.Warn("region's file was removed or replaced: its contents are lost when this daemon ends, with "+
					"what peers change", "region", r.Name, "file", r.Backing, "cause", cause, "remedy", fmt.Sprintf(
					"save them first: `cp /proc/%d/fd/%d %s.saved`; then end the daemon, put that file in place, and "+
						"start it again", os.Getpid(), r.fd, r.Backing))
			}
		}
	}
}

// tellLost logs, at the end, which regions' contents end with the daemon although they
// were in files.
func (s *server) tellLost() {
	for _, r := range s.served.all() {
		if cause := r.moved(); cause != "" {
			s.log.Error("contents of a region are lost: its file was removed or replaced while this daemon served it",
				"region", r.Name, "size", r.Size, "file", r.Backing, "cause", cause)
		}
	}
}
