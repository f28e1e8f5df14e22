// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// From the kernel's ethtool_netlink_generated.h.
const (
	ethtoolFeaturesSet = 12 // ETHTOOL_MSG_FEATURES_SET
	ethtoolChannelsGet = 17 // ETHTOOL_MSG_CHANNELS_GET
	ethtoolChannelsSet = 18 // ETHTOOL_MSG_CHANNELS_SET
	requestHeader      = 1  // ETHTOOL_A_…_HEADER
	headerDevIndex     = 1  // ETHTOOL_A_HEADER_DEV_INDEX
	channelsRX         = 6  // ETHTOOL_A_CHANNELS_RX_COUNT
	channelsTX         = 7  // ETHTOOL_A_CHANNELS_TX_COUNT
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
	_, err := ask(ifindex, command, attrs...)
	return err
}

// ask has the kernel answer a message about an interface of the thread's namespace.
func ask(ifindex int, command uint8, attrs ...*nl.RtAttr) (answer [][]byte, err error) {
	f, err := netlink.GenlFamilyGet("ethtool")
	if err != nil {
		return nil, fmt.Errorf("generic netlink family ethtool: %w", err)
	}
	req := nl.NewNetlinkRequest(int(f.ID), unix.NLM_F_ACK)
	req.AddData(genlHeader{command, uint8(f.Version)})
	header := nl.NewRtAttr(requestHeader|unix.NLA_F_NESTED, nil)
	header.AddRtAttr(headerDevIndex, nl.Uint32Attr(uint32(ifindex)))
	req.AddData(header)
	for _, a := range attrs {
		req.AddData(a)
	}
	return req.Execute(unix.NETLINK_GENERIC, 0)
}

// setQueues sets the number of queues of an interface of the thread's namespace, as
// `ethtool -L IF combined N` does, or `ethtool -L IF rx N tx N` where each receives or
// sends alone.
func setQueues(ifindex, n int) error {
	count := func(attr int) *nl.RtAttr { return nl.NewRtAttr(attr, nl.Uint32Attr(uint32(n))) }
	err := ethtool(ifindex, ethtoolChannelsSet, count(channelsCombined))
	if errors.Is(err, unix.EINVAL) &&
		ethtool(ifindex, ethtoolChannelsSet, count(channelsRX), count(channelsTX)) == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%d queues: %w", n, err)
	}
	return nil
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
