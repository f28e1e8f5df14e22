// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// opened are the domains of this process that are open on interfaces, with the place of
// each. GetInfo describes them in place of an interface that is in use.
var opened struct {
	sync.Mutex
	at map[place]*Domain
}

// place is an interface of the machine.
type place struct {
	namespace uint64 // inode of the network namespace
	index     int
}

// here returns the place of an interface in the network namespace of the calling thread.
func here(index int) place {
	var s unix.Stat_t
	_ = unix.Stat("/proc/thread-self/ns/net", &s) // without /proc all namespaces are taken for one
	return place{s.Ino, index}
}

// ours adds to an error of opening an interface that this process itself has it open, if
// it has.
func ours(ifname string, err error) error {
	i, unknown := net.InterfaceByName(ifname)
	if unknown != nil || here(i.Index).instance() == nil {
		return err
	}
	return fmt.Errorf("a domain of this process has %s, use that one, which GetInfo returns as DomainInfo.Instance, or close it: %w: %w", ifname, ErrBusy, err)
}

// enter and leave note that a domain is open, and that it no longer is.
func (p place) enter(d *Domain) {
	opened.Lock()
	defer opened.Unlock()
	if opened.at == nil {
		opened.at = map[place]*Domain{}
	}
	opened.at[p] = d
	d.node.place = p
}

func (d *Domain) leave() {
	opened.Lock()
	defer opened.Unlock()
	if opened.at[d.node.place] == d {
		delete(opened.at, d.node.place)
	}
}

// instance returns the domain that is open on an interface, or nil. One whose interface
// was lost is not.
func (p place) instance() *Domain {
	opened.Lock()
	defer opened.Unlock()
	if d := opened.at[p]; d != nil && d.Err() == nil {
		return d
	}
	return nil
}
