// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/resident"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// previewLeft says what becomes of the resident regions that a former daemon has left.
// The start would be refused for what it finds wrong with the folder, and for the error.
func (c Config) previewLeft(folder string) (notes []string, found []problem, err error) {
	if _, err := c.findPin(); err != nil && c.resides() && !c.Leave {
		notes = append(notes, fmt.Sprintf("%s: %v", endsWithDaemon, err))
	}
	if c.Pin != pinAuto && c.Pin != pinNone {
		if err := resident.CheckFolder(c.Pin); err != nil {
			found = append(found, problem{key: "pin", text: err.Error()})
		}
	}
	if err := cmp.Or(c.mayLeave(), c.leftElsewhere(folder)); err != nil {
		return notes, found, err
	}
	left := leftIn(folder, 0)
	switch {
	case left.InUse:
		return notes, found, nil // previewRunning tells
	case !left.Whole:
		return append(notes, lostIn(folder)...), found, nil
	}
	if err := errors.Join(c.fitsLeft(left), c.leftFits(left)); err != nil {
		return notes, found, err
	}
	more := c.unnamed(left)
	for _, name := range left.Regions {
		note := fmt.Sprintf("region %q: goes on with what a former daemon has left in %s", name, folder)
		if i := slices.IndexFunc(more, func(r RegionConfig) bool { return r.Name == name }); i >= 0 {
			note += fmt.Sprintf(", though the configuration does not name it: add --region %s, or end it after the "+
				"start with `xdpfab region remove %s`", residentOf(name, more[i].Size, more[i].Access), name)
		}
		notes = append(notes, note)
	}
	return notes, found, nil
}

// lostIn tells of resident regions in a folder whose interface is gone.
func lostIn(folder string) (notes []string) {
	if folder == "" {
		return nil
	}
	all, _ := resident.List(folder)
	for _, l := range all {
		for _, name := range l.Regions {
			if l.Ended && !l.InUse {
				notes = append(notes, fmt.Sprintf("region %q: what a former daemon has left of it in %s is lost: "+
					"it was of an interface that is gone", name, folder))
			}
		}
	}
	return notes
}

// leftFits reports an error if what was left cannot go on at the interface as it is now.
func (c Config) leftFits(left resident.Left) error {
	err := c.leftOf(left)
	if err == nil {
		return nil
	}
	return fmt.Errorf("what a former daemon has left in %s cannot be taken back: %w; to begin anew, end it with "+
		"`xdpfab resident remove %s`", left.Folder, err, left.Folder)
}

func (c Config) leftOf(left resident.Left) error {
	is, err := net.InterfaceByName(c.Interface)
	if err != nil {
		all, _ := nic.List()
		for i := range all {
			if name := all[i].Name; all[i].Left() == left.Folder {
				return fmt.Errorf("its interface is named %s by now, not %s; to go on, `ip link set dev %s name %s`, "+
					"or --interface %s --pin %s", name, c.Interface, name, c.Interface, name, left.Folder)
			}
		}
		return nil // the summary says that there is no such interface
	}
	var mac wire.MAC
	copy(mac[:], is.HardwareAddr)
	if err := left.Node.Fits(c.Interface, mac, c.UDP); err != nil {
		return err
	}
	i, err := nic.Inspect(c.Interface)
	if err != nil {
		return nil // which opening it says better
	}
	queues := max(c.Queues+c.Lend, min(i.RXQueues, bpf.MaxReceiveQueues))
	return nic.Fewer(c.Interface, bpf.Fits(left.State(), queues, is.Index))
}

// leftElsewhere reports an error if a former daemon has left resident regions on the
// interface which a start would not look for, and which keep the interface.
func (c Config) leftElsewhere(folder string) error {
	i, err := nic.Inspect(c.Interface)
	if err != nil {
		return nil
	}
	is := i.Left()
	if is == "" || is == folder {
		return nil
	}
	all, _ := resident.List(is)
	if c.Transport == udpnode.UDP && (len(all) != 1 || !all[0].Node.UDP) {
		return nil // sockets can have the UDP packets
	}
	return fmt.Errorf("a former daemon has left resident regions on %s, in %s, and this configuration does not look "+
		"there: to go on with them, --transport xdp --pin %s; to begin anew, end them with `xdpfab resident remove %s`",
		c.Interface, is, is, is)
}
