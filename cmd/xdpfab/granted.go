// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/bench"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// What a peer's region does not grant: rights, or a session with its authorization key.

// denied adds to the error of an operation that a region does not grant what the region
// wants. The rights of a region that is given by its key are not known.
func (f *linkFlags) denied(err error, at xdpfab.RemoteRegion, what string, need mr.Access) error {
	if !errors.Is(err, xdpfab.ErrAccess) {
		return err
	}
	name := fmt.Sprintf("region %q", at.Name)
	switch {
	case at.Name != "" && need&^at.Access != 0:
		return fmt.Errorf("%w: %s grants %s, and %s takes %s: have its owner grant that (xdpfabd --region "+
			"NAME=SIZE:rw)", err, name, inWords(at.Access), what, inWords(need))
	case at.Name == "":
		name = "this region, if it grants " + inWords(need) + ","
	}
	if f.authKey == "" {
		return fmt.Errorf("%w: %s has an authorization key, and this command proves none: name the file with the "+
			"region's key by --auth-key-file", err, name)
	}
	return fmt.Errorf("%w: %s has no authorization key, or another than the one in %s: leave out --auth-key-file for "+
		"a region without a key, or name the file with the region's key", err, name, f.authKey)
}

// unadvised is the error of a region that does not grant a right, without the advice for
// programs.
func unadvised(err error) error {
	if oe, is := errors.AsType[*xdpfab.OpError](err); is && errors.Is(err, xdpfab.ErrAccess) {
		return oe
	}
	return err
}

// keyed adds to the error of a dial that an authorization key is not the right one what
// the peer's regions could want.
func (f *linkFlags) keyed(err error) error {
	switch {
	case !errors.Is(err, fi.ErrAuthKey):
		return err
	case f.authKey == "":
		return fmt.Errorf("%w: name the file with the peer's key by --auth-key-file", err)
	}
	if oe, is := errors.AsType[*xdpfab.OpError](err); is { // without which side has which key
		oe.Cause = fmt.Errorf("%w: %w", xdpfab.ErrRefused, fi.ErrAuthKey)
	}
	if f.mailbox {
		return fmt.Errorf("%w: the mailbox has no key, or another than the one in %s: leave out --auth-key-file, or "+
			"have `xdpfab receive` there prove the same key", err, f.authKey)
	}
	return fmt.Errorf("%w: the peer has nothing with the key in %s: name the file with the key that the region has "+
		"there (xdpfabd --region NAME=SIZE:auth-key=FILE), or leave out --auth-key-file for regions without one", err,
		f.authKey)
}

// rights are those that the operation of a benchmark takes.
func (f *benchFlags) rights() mr.Access {
	switch {
	case f.Both:
	case f.Op == bench.Get || f.Op == "read":
		return mr.RemoteRead
	case f.Op == bench.Put:
		return mr.RemoteWrite
	}
	return mr.RemoteRead | mr.RemoteWrite
}

// inWords names rights as the daemon's options do.
func inWords(a mr.Access) string {
	switch a {
	case mr.RemoteRead:
		return "read"
	case mr.RemoteWrite:
		return "write"
	case mr.RemoteRead | mr.RemoteWrite:
		return "read and write"
	}
	return "nothing"
}
