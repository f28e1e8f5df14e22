// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// More of ethtool_netlink.h: messages, and their attributes in the same order.
const (
	ethtoolFeaturesGet = 11 // ETHTOOL_MSG_FEATURES_GET
	ethtoolRingsGet    = 15 // ETHTOOL_MSG_RINGS_GET
	ethtoolCoalesceGet = 19 // ETHTOOL_MSG_COALESCE_GET
	ethtoolPauseGet    = 21 // ETHTOOL_MSG_PAUSE_GET

	featuresChangeable = 2  // ETHTOOL_A_FEATURES_HW
	featuresActive     = 4  // ETHTOOL_A_FEATURES_ACTIVE
	bitsetBits         = 3  // ETHTOOL_A_BITSET_BITS
	bitsetNoMask       = 1  // ETHTOOL_A_BITSET_NOMASK
	bitName            = 2  // ETHTOOL_A_BITSET_BIT_NAME
	bitValue           = 3  // ETHTOOL_A_BITSET_BIT_VALUE
	ringsRXMax         = 2  // ETHTOOL_A_RINGS_RX_MAX
	ringsRX            = 6  // ETHTOOL_A_RINGS_RX
	coalesceRXUsecs    = 2  // ETHTOOL_A_COALESCE_RX_USECS
	coalesceAdaptiveRX = 11 // ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX
	pauseRX            = 3  // ETHTOOL_A_PAUSE_RX
	pauseTX            = 4  // ETHTOOL_A_PAUSE_TX
)

// Settings are the settings of a driver, as ethtool shows them. Each group has
// an error of its own; one that wraps unix.EOPNOTSUPP says that the driver has
// no such setting.
type Settings struct {
	// Offloads are listed by the kernel's names ("rx-lro"), with true for those
	// in force. An offload that is off and cannot be changed is absent.
	Offloads    map[string]bool
	OffloadsErr error

	RXRing, RXRingMax uint32 // entries
	RingErr           error

	// RXUsecs is how long an interrupt may be held back, in microseconds.
	RXUsecs     uint32
	AdaptiveRX  bool // the driver changes RXUsecs by itself
	CoalesceErr error

	PauseRX, PauseTX bool // pause frames are obeyed, are sent
	PauseErr         error
}

// SettingsOf asks the driver of an interface of the caller's network namespace. It
// needs no privilege.
func SettingsOf(ifindex int) (s Settings) {
	s.Offloads, s.OffloadsErr = offloads(ifindex)
	a, err := askDriver(ethtoolRingsGet, ifindex)
	if s.RingErr = err; err == nil {
		s.RXRing, s.RXRingMax, s.RingErr = number(a, ringsRX), number(a, ringsRXMax), has(a, ringsRX)
	}
	if a, err = askDriver(ethtoolCoalesceGet, ifindex); err != nil {
		s.CoalesceErr = err
	} else {
		s.RXUsecs, s.AdaptiveRX, s.CoalesceErr = number(a, coalesceRXUsecs), flag(a, coalesceAdaptiveRX), has(a,
			coalesceRXUsecs)
	}
	if a, err = askDriver(ethtoolPauseGet, ifindex); err != nil {
		s.PauseErr = err
	} else {
		s.PauseRX, s.PauseTX, s.PauseErr = flag(a, pauseRX), flag(a, pauseTX), has(a, pauseRX)
	}
	return s
}

// askDriver asks ethtool's family about one interface.
func askDriver(command uint8, ifindex int) (map[uint16][]byte, error) {
	header := nl.NewRtAttr(1|unix.NLA_F_NESTED, nil) // ETHTOOL_A_…_HEADER is 1 in every message
	header.AddRtAttr(headerDevIndex, nl.Uint32Attr(uint32(ifindex)))
	return ask("ethtool", command, header)
}

// offloads reads two sets of bits: what can be changed, and what is in force.
func offloads(ifindex int) (map[string]bool, error) {
	a, err := askDriver(ethtoolFeaturesGet, ifindex)
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	for _, group := range []struct {
		attr uint16
		on   bool
	}{{featuresChangeable, false}, {featuresActive, true}} {
		names, err := bitNames(a[group.attr])
		if err != nil {
			return nil, fmt.Errorf("offloads: %w", err)
		}
		for _, n := range names {
			set[n] = group.on
		}
	}
	return set, nil
}

// bitNames lists the names of the bits that are set: without a mask only those are
// in the list, with a mask they carry a mark.
func bitNames(set []byte) (names []string, err error) {
	fields, err := attributes(set)
	if err != nil {
		return nil, err
	}
	bits, err := nl.ParseRouteAttr(fields[bitsetBits])
	if err != nil {
		return nil, err
	}
	_, all := fields[bitsetNoMask]
	for _, b := range bits {
		bit, err := attributes(b.Value)
		if err != nil {
			return nil, err
		}
		if _, set := bit[bitValue]; !set && !all {
			continue
		}
		names = append(names, unix.ByteSliceToString(bit[bitName]))
	}
	return names, nil
}

// has returns an error when the answer lacks an attribute: this is how drivers say
// that they do not have a setting.
func has(a map[uint16][]byte, attr uint16) error {
	if len(a[attr]) == 0 {
		return fmt.Errorf("the driver does not report this setting: %w", unix.EOPNOTSUPP)
	}
	return nil
}

// number returns an attribute of 32 bits, 0 if there is none.
func number(a map[uint16][]byte, attr uint16) uint32 {
	if v := a[attr]; len(v) == 4 {
		return binary.NativeEndian.Uint32(v)
	}
	return 0
}

// flag returns an attribute of 8 bits as a truth value.
func flag(a map[uint16][]byte, attr uint16) bool { return len(a[attr]) == 1 && a[attr][0] != 0 }
