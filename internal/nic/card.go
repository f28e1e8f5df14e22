// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"golang.org/x/sys/unix"
)

// Card is what the driver says of itself and its device, as `ethtool -i` shows it.
type Card struct {
	Driver   string `json:"driver"`
	Version  string `json:"version"`
	Firmware string `json:"firmware"`
	Bus      string `json:"bus"`
}

// CardOf asks the driver of an interface of the calling thread's network namespace.
func CardOf(ifname string) (Card, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Card{}, err
	}
	defer unix.Close(fd)
	i, err := unix.IoctlGetEthtoolDrvinfo(fd, ifname)
	if err != nil {
		return Card{}, fmt.Errorf("%s has no driver that tells of itself: %w", ifname, err)
	}
	text := unix.ByteSliceToString
	return Card{text(i.Driver[:]), text(i.Version[:]), text(i.Fw_version[:]), text(i.Bus_info[:])}, nil
}

// Seen is what a driver gave when it was tried.
type Seen struct {
	XDP, Copy string // as Plan has them
	MTU       int    // at which
}

// version is the part of a kernel's release that a row has.
var version = regexp.MustCompile(`^\d+\.\d+`)

// Row returns the table's row of the interface's driver as it should be after a trial:
// the present one, or a new one, with what was seen in place of what was supposed.
func (i *Interface) Row(release string, s Seen) Limits {
	l, _ := LimitsOf(i.Driver)
	l.Driver, l.Evidence, l.Linux = i.Driver, Tried, cmp.Or(version.FindString(release), release)
	if i.FeaturesKnown {
		l.Redirect, l.ZeroCopy = i.features&XDPRedirect != 0, i.features&XDPZeroCopy != 0
		if l.FragsMTU == 0 && slices.Contains(i.Features, "rx-sg") {
			l.FragsMTU = Anyhow
		}
	}
	switch {
	case s.XDP == "native":
		l.XDP, l.Redirect, l.ZeroCopy = hasNative, true, l.ZeroCopy || s.Copy == "zero-copy"
		if l.MTU != 0 {
			l.MTU = max(l.MTU, s.MTU)
		}
	case i.Kind == "bond":
		l.XDP = givesLower
	default:
		l.XDP = hasGeneric
	}
	if l.XDP != hasNative {
		l = Limits{Driver: l.Driver, Evidence: Tried, Linux: l.Linux, XDP: l.XDP, Note: l.Note}
	}
	return l
}
