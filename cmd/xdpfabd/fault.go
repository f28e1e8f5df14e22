// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"reflect"
	"time"
)

// faultLimit is how long the daemon looks for the region of a fault: a command may keep
// the list of regions until the poller, which has had the fault, goes on. It is more than
// a look takes by far.
const faultLimit = time.Second

// faulted ends the daemon if a poller could not use a page of a region's file, as when
// another program has shortened the file: the poller cannot go on in the middle of an
// operation. Another fault is the runtime's to report.
func (s *server) faulted(addr uintptr) {
	defer time.AfterFunc(faultLimit, func() { os.Exit(exitFailure) }).Stop()
	for _, r := range s.served.all() {
		if r.isFile() && r.mem != nil && r.holds(addr) {
			_, length, _ := r.file()
			size := len(r.mem.Bytes())
			s.log.Error("region's file lacks a page that a peer used: the daemon ends", "region", r.Name,
				"file", r.Backing, "size", size, "length", length, "cause", lacks(size, length))
			os.Exit(exitFailure)
		}
	}
}

// holds reports whether the address lies in the region's memory.
func (r *region) holds(addr uintptr) bool {
	data := r.mem.Bytes()
	return addr-reflect.ValueOf(data).Pointer() < uintptr(len(data))
}

// lacks says why a page of a region's file can be missing, and the remedy.
func lacks(size int, length int64) string {
	if length < int64(size) {
		return fmt.Sprintf("another program shortened the file from %d to %d bytes; restore the file while no daemon "+
			"serves it, or the next daemon fills it up with zeros", size, length)
	}
	return "the kernel could not read or write the page; check the device (dmesg) and its free space (df), and start " +
		"the daemon again"
}
