// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Commands and attributes of the generic netlink families, from the kernel's
// netdev.h and ethtool_netlink.h.
const (
	netdevDevGet      = 1 // NETDEV_CMD_DEV_GET
	netdevIfIndex     = 1 // NETDEV_A_DEV_IFINDEX
	netdevXDPFeatures = 3 // NETDEV_A_DEV_XDP_FEATURES
	netdevZCMaxSegs   = 4 // NETDEV_A_DEV_XDP_ZC_MAX_SEGS, Linux 6.6

	ethtoolChannelsGet = 17 // ETHTOOL_MSG_CHANNELS_GET
	headerDevIndex     = 1  // ETHTOOL_A_HEADER_DEV_INDEX
	channelsMaxRX      = 2  // ETHTOOL_A_CHANNELS_RX_MAX
	channelsMaxBoth    = 5  // ETHTOOL_A_CHANNELS_COMBINED_MAX
	channelsRX         = 6  // ETHTOOL_A_CHANNELS_RX_COUNT
	channelsTX         = 7  // ETHTOOL_A_CHANNELS_TX_COUNT
	channelsCombined   = 9  // ETHTOOL_A_CHANNELS_COMBINED_COUNT
)

// XDPFeatures are what a driver offers, the flags of enum netdev_xdp_act.
type XDPFeatures uint64

// The flags that matter here.
const (
	XDPBasic    XDPFeatures = 1 << 0
	XDPRedirect XDPFeatures = 1 << 1
	XDPNdoXmit  XDPFeatures = 1 << 2
	XDPZeroCopy XDPFeatures = 1 << 3
	XDPRXSG     XDPFeatures = 1 << 5 // packets in several buffers
)

var featureNames = []string{"basic", "redirect", "ndo-xmit", "xsk-zerocopy", "hw-offload", "rx-sg", "ndo-xmit-sg"}

// Names lists the features as netdev.yaml names them.
func (f XDPFeatures) Names() []string {
	names := []string{}
	for i, n := range featureNames {
		if f&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// String joins the names.
func (f XDPFeatures) String() string { return strings.Join(f.Names(), " ") }

// genlHeader is struct genlmsghdr: command, version, and two bytes that have to be
// zero. That of package nl leaves those two bytes to chance, and reads them where another
// variable may lie: so GenlFamilyGet of package netlink is not used here.
type genlHeader [nl.SizeofGenlmsg]byte

func (h genlHeader) Len() int          { return len(h) }
func (h genlHeader) Serialize() []byte { return h[:] }

// ask sends one request to a generic netlink family and returns the attributes of
// the answer by number.
func ask(family string, command uint8, attrs ...nl.NetlinkRequestData) (map[uint16][]byte, error) {
	id, version, err := familyOf(family)
	if err != nil {
		return nil, err
	}
	found, err := call(id, genlHeader{command, version}, attrs...)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", family, err)
	}
	return found, nil
}

// tell sends one request to which there is no answer but success or an error.
func tell(family string, command uint8, attrs ...nl.NetlinkRequestData) error {
	id, version, err := familyOf(family)
	if err != nil {
		return err
	}
	if _, err = execute(id, unix.NLM_F_ACK, genlHeader{command, version}, attrs); err != nil {
		return fmt.Errorf("telling %s: %w", family, err)
	}
	return nil
}

// familyOf finds a generic netlink family.
func familyOf(family string) (id int, version uint8, err error) {
	f, err := call(unix.GENL_ID_CTRL, genlHeader{unix.CTRL_CMD_GETFAMILY, 1},
		nl.NewRtAttr(unix.CTRL_ATTR_FAMILY_NAME, nl.ZeroTerminated(family)))
	if err != nil {
		return 0, 0, fmt.Errorf("generic netlink family %s: %w", family, err)
	}
	b := f[unix.CTRL_ATTR_FAMILY_ID]
	if len(b) != 2 {
		return 0, 0, fmt.Errorf("generic netlink family %s: an id of %d bytes, want 2", family, len(b))
	}
	return int(binary.NativeEndian.Uint16(b)), uint8(number(f, unix.CTRL_ATTR_VERSION)), nil
}

// execute sends one request to the family of an id, and returns the answers.
func execute(id, flags int, h genlHeader, attrs []nl.NetlinkRequestData) ([][]byte, error) {
	req := nl.NewNetlinkRequest(id, flags)
	req.AddData(h)
	for _, a := range attrs {
		req.AddData(a)
	}
	return req.Execute(unix.NETLINK_GENERIC, 0)
}

// call sends one request to the family of an id.
func call(id int, h genlHeader, attrs ...nl.NetlinkRequestData) (map[uint16][]byte, error) {
	msgs, err := execute(id, 0, h, attrs)
	if err != nil {
		return nil, err
	}
	if len(msgs) == 0 || len(msgs[0]) < nl.SizeofGenlmsg {
		return nil, errors.New("no answer")
	}
	return attributes(msgs[0][nl.SizeofGenlmsg:])
}

// attributes parses a list of attributes; of equal numbers the last one counts.
func attributes(b []byte) (map[uint16][]byte, error) {
	list, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil, err
	}
	found := make(map[uint16][]byte)
	for _, a := range list {
		found[a.Attr.Type&nl.NLA_TYPE_MASK] = a.Value
	}
	return found, nil
}

// xdpFeatures asks the kernel for the features of the driver; Linux 6.3 and
// later can tell. segments is how many buffers a packet may have with zero-copy, 0 if the
// driver has no zero-copy.
func xdpFeatures(ifindex int) (f XDPFeatures, segments int, err error) {
	a, err := ask("netdev", netdevDevGet, nl.NewRtAttr(netdevIfIndex, nl.Uint32Attr(uint32(ifindex))))
	if err != nil {
		return 0, 0, err
	}
	v := a[netdevXDPFeatures]
	if len(v) != 8 {
		return 0, 0, errors.New("the kernel does not report XDP features")
	}
	return XDPFeatures(binary.NativeEndian.Uint64(v)), int(min(number(a, netdevZCMaxSegs), maxSegments)), nil
}

// channels asks the driver how many queues are in use; not every driver knows.
func channels(ifindex int) (rx, tx int, err error) {
	a, err := askDriver(ethtoolChannelsGet, ifindex)
	if err != nil {
		return 0, 0, err
	}
	count := func(attr uint16) int { return int(min(number(a, attr), math.MaxInt32)) }
	both := count(channelsCombined)
	return both + count(channelsRX), both + count(channelsTX), nil
}

// MostChannels is how many queues of an interface could be in use; 0 if its driver does
// not tell.
func MostChannels(ifindex int) int { return channelsOf(ifindex).most }

// channelling is how a driver's queues are set up.
type channelling struct {
	most     int  // that could be in use; 0 if the driver does not tell
	apart    bool // some receive alone, or send alone
	separate bool // no queue can do both: ethtool sets rx and tx
}

func channelsOf(ifindex int) (c channelling) {
	a, err := askDriver(ethtoolChannelsGet, ifindex)
	if err != nil {
		return c
	}
	c.most = int(min(max(number(a, channelsMaxBoth), number(a, channelsMaxRX)), math.MaxInt32))
	c.apart = number(a, channelsRX)+number(a, channelsTX) > 0
	c.separate = number(a, channelsMaxBoth) == 0 && number(a, channelsMaxRX) > 0
	return c
}

// SetQueues is the command that gives the interface so many queues. The kernel refuses
// fewer while a queue beyond them has a socket.
func (i *Interface) SetQueues(n int) string {
	if i.channels.separate || i.Driver == "veth" {
		return fmt.Sprintf("ethtool -L %s rx %d tx %d", i.Name, n, n)
	}
	return fmt.Sprintf("ethtool -L %s combined %d", i.Name, n)
}

// SetQueues is Interface.SetQueues of the interface with this name. If that cannot be
// asked, it is the command of most drivers.
func SetQueues(name string, n int) string {
	i, err := Inspect(name)
	if err != nil {
		i.Name = name
	}
	return i.SetQueues(n)
}
