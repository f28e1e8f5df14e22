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
	ethtoolFeaturesSet = 12 // ETHTOOL_MSG_FEATURES_SET
	ethtoolChannelsSet = 18 // ETHTOOL_MSG_CHANNELS_SET
	requestHeader      = 1  // ETHTOOL_A_…_HEADER
	headerDevIndex     = 1  // ETHTOOL_A_HEADER_DEV_INDEX
	channelsCombined   = 9  // ETHTOOL_A_CHANNELS_COMBINED_COUNT
	featuresWanted     = 3  // ETHTOOL_A_FEATURES_WANTED
	bitsetBits         = 3  // ETHTOOL_A_BITSET_BITS
	bitsBit            = 1  // ETHTOOL_A_BITSET_BITS_BIT
	bitName            = 2  // ETHTOOL_A_BITSET_BIT_NAME
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

// TagInFrames has a side's interface send 802.1Q tags in the frames, where an XDP program
// at the other end sees them, and not beside them: `ethtool -K IF txvlan off`.
func (s *Side) TagInFrames() error {
	wanted := nl.NewRtAttr(featuresWanted|unix.NLA_F_NESTED, nil)
	bit := wanted.AddRtAttr(bitsetBits|unix.NLA_F_NESTED, nil).AddRtAttr(bitsBit|unix.NLA_F_NESTED, nil)
	bit.AddRtAttr(bitName, nl.ZeroTerminated("tx-vlan-hw-insert")) // without a value: off
	if err := s.Do(func() error { return ethtool(s.IfIndex, ethtoolFeaturesSet, wanted) }); err != nil {
		return fmt.Errorf("veth: %s: tags in frames: %w", s.Name, err)
	}
	return nil
}
