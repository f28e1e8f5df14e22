// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// attrTypeMask removes the flags that the kernel keeps in an attribute's type
// (NLA_TYPE_MASK).
const attrTypeMask = 0x3fff

// xdpAttrs are the members of IFLA_XDP that name the program of a mode.
var xdpAttrs = map[uint16]Mode{
	unix.IFLA_XDP_DRV_PROG_ID: Native,
	unix.IFLA_XDP_SKB_PROG_ID: Generic,
}

// attachedTo asks rtnetlink(7) for the ids of the programs on an interface of
// this network namespace, by mode. It needs no privilege, which is why it is
// preferred over BPF_PROG_QUERY.
func attachedTo(ifindex int) (map[Mode]uint32, error) {
	rib, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("bpf: listing interfaces: %w", err)
	}
	msgs, err := syscall.ParseNetlinkMessage(rib)
	if err != nil {
		return nil, fmt.Errorf("bpf: listing interfaces: %w", err)
	}
	for i := range msgs {
		// struct ifinfomsg: the index is the u32 at 4.
		if msgs[i].Header.Type != unix.RTM_NEWLINK || len(msgs[i].Data) < unix.SizeofIfInfomsg ||
			int(binary.NativeEndian.Uint32(msgs[i].Data[4:])) != ifindex {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(&msgs[i])
		if err != nil {
			return nil, fmt.Errorf("bpf: attributes of interface %d: %w", ifindex, err)
		}
		for _, a := range attrs {
			if a.Attr.Type&attrTypeMask == unix.IFLA_XDP {
				return parseXDP(a.Value)
			}
		}
		return nil, nil // a kernel without XDP reports nothing
	}
	return nil, fmt.Errorf("bpf: no interface %d in this network namespace: %w", ifindex, unix.ENODEV)
}

// parseXDP reads the attributes nested in IFLA_XDP: length and type, u16 each,
// then the value, padded to 4.
func parseXDP(b []byte) (map[Mode]uint32, error) {
	on := make(map[Mode]uint32)
	for len(b) >= unix.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return nil, errors.New("bpf: malformed IFLA_XDP attribute from the kernel")
		}
		mode, ok := xdpAttrs[binary.NativeEndian.Uint16(b[2:])&attrTypeMask]
		if value := b[unix.SizeofRtAttr:n]; ok && len(value) == 4 {
			on[mode] = binary.NativeEndian.Uint32(value)
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return on, nil
}
