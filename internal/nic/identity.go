// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Identity tells a NIC from all others, whatever its name and addresses are by now, as
// long as its settings last: a boot ends them.
type Identity struct {
	Boot   string `json:"boot"`
	Driver string `json:"driver"`
	Bus    string `json:"bus"` // address of the device; empty if it is on none
	MAC    string `json:"mac"` // burnt in; empty if it has none
	Index  int    `json:"index"`
	NetNS  uint64 `json:"netns"` // network namespace, in which it has the index
}

// IdentityOf looks at an interface of the calling thread's network namespace, by its
// index: it may have another name by now.
func IdentityOf(i *Interface) Identity {
	id := Identity{Boot: boot(), Driver: i.Driver, Index: i.Index}
	var ns unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &ns); err == nil {
		id.NetNS = ns.Ino
	}
	if l, err := netlink.LinkByIndex(i.Index); err == nil {
		id.MAC = l.Attrs().PermHWAddr.String()
		if card, err := CardOf(l.Attrs().Name); err == nil {
			id.Bus = card.Bus
		}
	}
	return id
}

// boot names the present boot.
func boot() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// is reports whether the two are one NIC. The index in its namespace decides only for one
// without an address of either sort: it is another one in another namespace.
func (id *Identity) is(other *Identity) bool {
	return id.Boot == other.Boot && id.Driver == other.Driver && id.Bus == other.Bus && id.MAC == other.MAC &&
		(id.Index == other.Index && id.NetNS == other.NetNS || id.Bus != "" && id.MAC != "")
}

// find opens the NIC of an identity in the calling thread's network namespace.
func find(id Identity) (*Steered, Classifier, func(), error) {
	all, err := List()
	if err != nil {
		return nil, nil, nil, err
	}
	for _, i := range all {
		if at := IdentityOf(&i); at.is(&id) {
			c, done, err := OpenClassifier(i.Name)
			return &Steered{Interface: i, Identity: at}, c, done, err
		}
	}
	return nil, nil, nil, fmt.Errorf("driver %s, %s: %w", id.Driver, id.Bus, fs.ErrNotExist)
}

// ToSteer returns an interface of the calling thread's network namespace that is to be
// steered, or not. There may be none of that name: it is returned with the error.
func ToSteer(name string) (*Steered, error) {
	i, err := Inspect(name)
	if err != nil {
		return &Steered{Interface: Interface{Name: name}, Identity: Identity{Boot: boot()}, find: find}, err
	}
	return &Steered{Interface: i, Identity: IdentityOf(&i), find: find}, nil
}
