// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// What a copy that failed says: how far it came, and how it goes on.

// partial is the error of a copy under way.
type partial struct {
	error
	bytes uint64 // of the file that are there, from its beginning
}

func (p *partial) Unwrap() error { return p.error }

// getFailed completes the error of a get under way.
func (f *copyFlags) getFailed(x *copying, err error, path string) error {
	if err = f.link.denied(unadvised(err), x.region, "get", mr.RemoteRead); errors.Is(err, xdpfab.ErrAccess) {
		return err
	}
	if errors.Is(err, xdpfab.ErrNoKey) {
		return unknownKey(err)
	}
	remedy, room := "", ""
	if errors.Is(err, syscall.ENOSPC) {
		room = "make room, and "
	}
	s, no := os.Stat(path)
	switch {
	case path == "-" && f.length > 0:
		remedy = fmt.Sprintf(": continue with --offset %d --length %d", f.offset+x.sure, x.total-x.sure)
	case path == "-":
		remedy = fmt.Sprintf(": continue with --offset %d", f.offset+x.sure)
	case no != nil || !s.Mode().IsRegular(): // --resume goes by the length of a file
		return fmt.Errorf("%w; %d of %d bytes were copied: copy again, to another file", err, x.sure, x.total)
	case x.sure == 0: // the file may have contents of something else
		return fmt.Errorf("%w; no byte was copied: %scopy again", err, room)
	default:
		remedy = ": " + room + "continue with --resume"
	}
	if errors.Is(err, xdpfab.ErrPeerRestarted) {
		remedy += fmt.Sprintf(" if region %v is in a file, or resident; otherwise its memory is new: copy all of it "+
			"again", &f.region)
	}
	return fmt.Errorf("%w; %d of %d bytes were copied%s", err, x.sure, x.total, remedy)
}

// putFailed completes the error of a put under way.
func (f *copyFlags) putFailed(x *copying, err error) error {
	if errors.Is(err, xdpfab.ErrOutOfBounds) && f.region.name != "" {
		written := "nothing was written"
		if x.sure > 0 {
			written = fmt.Sprintf("its first %d bytes were written", x.sure)
		}
		return fmt.Errorf("%w: the input has more bytes than region %v has from offset %d on, which is %d; %s: "+
			"shorten the input, or have a larger region", xdpfab.ErrOutOfBounds, &f.region, f.offset,
			x.region.Size-f.offset, written)
	}
	if errors.Is(err, errNothing) {
		return err
	}
	if err = f.link.denied(err, x.region, "put", mr.RemoteWrite); errors.Is(err, xdpfab.ErrAccess) {
		return err
	}
	if errors.Is(err, xdpfab.ErrNoKey) && x.sure == 0 {
		return unknownKey(err)
	}
	if x.sure == 0 {
		return fmt.Errorf("%w; no byte is certain to be there: put all of it again", err)
	}
	if errors.Is(err, xdpfab.ErrPeerRestarted) {
		return fmt.Errorf("%w; if region %v is in a file, or resident, %d bytes are certain to be there: continue "+
			"with --skip %d; otherwise its memory is new: put all of it again", err, &f.region, x.sure, x.sure)
	}
	return fmt.Errorf("%w; %d bytes are certain to be there: continue with --skip %d", err, x.sure, x.sure)
}
