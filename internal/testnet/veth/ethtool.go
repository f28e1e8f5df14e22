// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// From the kernel's ethtool_netlink_generated.h.
const (
	ethtoolChannelsSet = 18 // ETHTOOL_MSG_CHANNELS_SET
	requestHeader      = 1  // ETHTOOL_A_…_HEADER
	headerDevIndex     = 1  // ETHTOOL_A_HEADER_DEV_INDEX
	channelsCombined   = 9  // ETHTOOL_A_CHANNELS_COMBINED_COUNT
)

// genlHeader is struct genlmsghdr.
type genlHeader [nl.SizeofGenlmsg]byte

func (h genlHeader) Len() int          { return len(h) }
func (h genlHeader) Serialize() []byte { return h[:] }

// ethtool changes an interface of the thread's namespace.
func ethtool(ifindex int, command uint8, attrs ...*nl.RtAttr) error {
	f, err := netlink.GenlFamilyGet("ethtool")
	if err != nil {
		return fmt.Errorf("generic netlink family ethtool: %w", err)
	}
	req := nl.NewNetlinkRequest(int(f.ID), unix.NLM_F_ACK)
	req.AddData(genlHeader{command, uint8(f.Version)})
	header := nl.NewRtAttr(requestHeader|unix.NLA_F_NESTED, nil)
	header.AddRtAttr(headerDevIndex, nl.Uint32Attr(uint32(ifindex)))
	req.AddData(header)
	for _, a := range attrs {
		req.AddData(a)
	}
	_, err = req.Execute(unix.NETLINK_GENERIC, 0)
	return err
}
