// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/dump"
)

// ErrNoVLAN means that the kernel was built without VLAN_8021Q, or lacks its
// module.
var ErrNoVLAN = errors.New("this kernel has no 802.1Q")

// Tag puts an 802.1Q interface of a VLAN on top of a side's interface and makes it
// the side's: name, index and addresses move to it. It has no native XDP, as no
// interface of that kind has. It is removed with the interface below.
func (s *Side) Tag(id int) error {
	if id < 1 || id > 4094 {
		return fmt.Errorf("veth: VLAN %d: want 1 to 4094", id)
	}
	h, err := netlink.NewHandleAt(s.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	below, err := h.LinkByIndex(s.IfIndex)
	if err != nil {
		return fmt.Errorf("veth: %s: %w", s.Name, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex = fmt.Sprintf("%s.%d", s.IfName, id), s.IfIndex
	err = h.LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: id, VlanProtocol: netlink.VLAN_PROTOCOL_8021Q})
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = fmt.Errorf("%w: %w", ErrNoVLAN, err)
	}
	if err != nil {
		return fmt.Errorf("veth: VLAN %d on %s: %w", id, s.Name, err)
	}
	top, err := h.LinkByName(attrs.Name)
	if err != nil {
		return err
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := dump.Whole(func() ([]netlink.Addr, error) { return h.AddrList(below, family) })
		if err != nil {
			return err
		}
		for _, a := range list {
			if !a.IP.IsLinkLocalUnicast() {
				if err := h.AddrDel(below, &a); err != nil {
					return err
				}
			}
		}
	}
	s.IfName, s.IfIndex = attrs.Name, top.Attrs().Index
	if err := errors.Join(addAddresses(h, top, s.IP4, s.IP6), h.LinkSetUp(top)); err != nil {
		return err
	}
	return awaitRunning(s)
}
