// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
)

// State is a device's interface as it is at some moment.
type State struct {
	Gone    bool         // removed, or moved to another network namespace
	Flags   net.Flags    // whether it is up, and has a carrier
	Missing []netip.Addr // the device serves them, and the interface no longer has them
	More    []netip.Addr // the interface has them, and the device does not serve them
}

// ErrElsewhere is the error of State in another network namespace than that of Open.
var ErrElsewhere = errors.New("udp: the calling thread is in another network namespace")

// State returns the present state of the interface.
func (d *Device) State() (s State, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if namespace() != d.home {
		return s, ErrElsewhere
	}
	all, err := net.Interfaces()
	if err != nil {
		return s, fmt.Errorf("udp: %s: %w", d.name, err)
	}
	n := slices.IndexFunc(all, func(i net.Interface) bool { return i.Index == d.iface.Index })
	if n < 0 {
		return State{Gone: true}, nil
	}
	now := &all[n]
	addrs, err := unicast(now)
	if err != nil {
		return s, fmt.Errorf("udp: addresses of %s: %w", d.name, err)
	}
	s.Flags = now.Flags
	for _, a := range d.addrs {
		if !has(now, a) {
			s.Missing = append(s.Missing, a)
		}
	}
	for _, a := range addrs {
		if !slices.Contains(d.addrs, a) {
			s.More = append(s.More, a)
		}
	}
	return s, nil
}

// namespace names the network namespace of the calling thread; "" where there are none.
func namespace() string {
	name, _ := os.Readlink("/proc/thread-self/ns/net")
	return name
}
