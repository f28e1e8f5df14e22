// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Classifier is the part of a NIC that chooses a receive queue for each packet: by a
// rule, or else by the hash of its addresses, which the indirection table turns into a
// queue.
type Classifier interface {
	// Table returns the indirection table: a queue for each remainder of the hash.
	Table() ([]uint32, error)
	// SetTable replaces it; nil stands for the driver's own.
	SetTable([]uint32) error
	// Rules returns the rules by their places. Those of other kinds are zero.
	Rules() (map[uint32]Rule, error)
	// Insert adds a rule at a free place, and Delete removes one.
	Insert(Rule) error
	Delete(place uint32) error
}

// Rule sends packets to a queue: those of an EtherType, or those over UDP, of IP version
// 4 or 6, to a port.
type Rule struct {
	EtherType uint16 `json:"ether_type,omitempty"`
	IP        uint8  `json:"ip,omitempty"` // 4, 6, or 0 for a rule on an EtherType
	Port      uint16 `json:"port,omitempty"`
	Queue     uint64 `json:"queue"`
}

// String returns what the rule is on.
func (r Rule) String() string {
	if r.IP == 0 {
		return fmt.Sprintf("EtherType %#04x", r.EtherType)
	}
	return fmt.Sprintf("UDP port %d over IPv%d", r.Port, r.IP)
}

// Commands and constants of linux/ethtool.h.
const (
	getRuleCount = 0x2e // ETHTOOL_GRXCLSRLCNT
	getRule      = 0x2f // ETHTOOL_GRXCLSRULE
	getRules     = 0x30 // ETHTOOL_GRXCLSRLALL
	deleteRule   = 0x31 // ETHTOOL_SRXCLSRLDEL
	insertRule   = 0x32 // ETHTOOL_SRXCLSRLINS
	getTable     = 0x38 // ETHTOOL_GRXFHINDIR
	setTable     = 0x39 // ETHTOOL_SRXFHINDIR

	udp4Flow     = 0x02       // UDP_V4_FLOW
	udp6Flow     = 0x06       // UDP_V6_FLOW
	etherFlow    = 0x12       // ETHER_FLOW
	placeSpecial = 0x80000000 // RX_CLS_LOC_SPECIAL
	placeAny     = 0xffffffff // RX_CLS_LOC_ANY
)

// Offsets in struct ethtool_rxnfc, bytes: fs is a struct ethtool_rx_flow_spec.
const (
	atData   = 8
	atFlow   = 16           // fs.flow_type
	atValue  = atFlow + 4   // fs.h_u
	atMask   = atValue + 72 // fs.m_u, behind h_ext; m_ext follows
	maskLen  = 72
	atQueue  = atFlow + 152 // fs.ring_cookie
	atPlace  = atFlow + 160 // fs.location
	atCount  = atFlow + 168
	atPlaces = atCount + 4
	rxnfcLen = 192
)

// field is where the only number of a rule is in fs.h_u and fs.m_u, two bytes, by the
// kind of flow: in a struct ethhdr, ethtool_tcpip4_spec or ethtool_tcpip6_spec.
var field = map[uint32]int{etherFlow: 12, udp4Flow: 10, udp6Flow: 34}

// driverClassifier is that of an interface of the network namespace of a socket.
type driverClassifier struct {
	call func(data []byte) error // SIOCETHTOOL
}

// OpenClassifier returns the classifier of an interface of the calling thread's network
// namespace, and what closes it.
func OpenClassifier(ifname string) (Classifier, func(), error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	call := func(data []byte) error { return ethtool(fd, ifname, data) }
	return driverClassifier{call}, func() { _ = unix.Close(fd) }, nil
}

// words makes a structure of 32-bit numbers.
func words(list ...uint32) (b []byte) {
	for _, w := range list {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	return b
}

func wordAt(b []byte, at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }

// Table implements Classifier.
func (c driverClassifier) Table() ([]uint32, error) {
	size := words(getTable, 0)
	if err := c.call(size); err != nil {
		return nil, err
	}
	n := int(wordAt(size, 4))
	b := append(words(getTable, uint32(n)), make([]byte, 4*n)...)
	if n == 0 {
		return nil, unix.EOPNOTSUPP
	}
	if err := c.call(b); err != nil {
		return nil, err
	}
	table := make([]uint32, n)
	for i := range table {
		table[i] = wordAt(b, 8+4*i)
	}
	return table, nil
}

// SetTable implements Classifier.
func (c driverClassifier) SetTable(table []uint32) error {
	return c.call(words(append([]uint32{setTable, uint32(len(table))}, table...)...))
}

// rxnfc makes the structure of a command about rules.
func rxnfc(command uint32, places int) []byte {
	b := make([]byte, rxnfcLen+4*places)
	binary.NativeEndian.PutUint32(b, command)
	binary.NativeEndian.PutUint32(b[atCount:], uint32(places))
	return b
}

// places lists the places of all rules, and returns how many places there are, with
// placeSpecial if the driver chooses one itself.
func (c driverClassifier) places() (used []uint32, size uint32, err error) {
	b := rxnfc(getRuleCount, 0)
	if err := c.call(b); err != nil {
		return nil, 0, err
	}
	special := wordAt(b, atData) & placeSpecial
	b = rxnfc(getRules, int(wordAt(b, atCount)))
	if err := c.call(b); err != nil {
		return nil, 0, err
	}
	for i := range int(wordAt(b, atCount)) {
		used = append(used, wordAt(b, atPlaces+4*i))
	}
	return used, wordAt(b, atData)&^placeSpecial | special, nil
}

// Rules implements Classifier.
func (c driverClassifier) Rules() (map[uint32]Rule, error) {
	used, _, err := c.places()
	if err != nil {
		return nil, err
	}
	rules := map[uint32]Rule{}
	for _, place := range used {
		b := rxnfc(getRule, 0)
		binary.NativeEndian.PutUint32(b[atPlace:], place)
		if err := c.call(b); err != nil {
			return nil, err
		}
		rules[place] = ruleOf(b)
	}
	return rules, nil
}

// ruleOf reads a rule, which is zero unless it is on such a number alone.
func ruleOf(b []byte) Rule {
	flow := wordAt(b, atFlow)
	at, known := field[flow]
	mask := make([]byte, maskLen)
	if known {
		mask[at], mask[at+1] = 0xff, 0xff
	}
	if !known || string(b[atMask:atMask+maskLen]) != string(mask) {
		return Rule{}
	}
	n, r := binary.BigEndian.Uint16(b[atValue+at:]), Rule{Queue: binary.NativeEndian.Uint64(b[atQueue:])}
	switch flow {
	case udp4Flow:
		r.IP, r.Port = 4, n
	case udp6Flow:
		r.IP, r.Port = 6, n
	default:
		r.EtherType = n
	}
	return r
}

// flow returns the kind of flow of the rule, and its number.
func (r Rule) flow() (uint32, uint16) {
	switch r.IP {
	case 4:
		return udp4Flow, r.Port
	case 6:
		return udp6Flow, r.Port
	}
	return etherFlow, r.EtherType
}

// put writes the rule for a place.
func (r Rule) put(b []byte, place uint32) {
	flow, n := r.flow()
	binary.NativeEndian.PutUint32(b[atFlow:], flow)
	binary.BigEndian.PutUint16(b[atValue+field[flow]:], n)
	binary.BigEndian.PutUint16(b[atMask+field[flow]:], 0xffff)
	binary.NativeEndian.PutUint64(b[atQueue:], r.Queue)
	binary.NativeEndian.PutUint32(b[atPlace:], place)
}

// Insert implements Classifier. Where the driver does not choose the place, the last free
// one is taken: rules before it win.
func (c driverClassifier) Insert(r Rule) error {
	used, size, err := c.places()
	if err != nil {
		return err
	}
	place := uint32(placeAny)
	if size&placeSpecial == 0 {
		taken := map[uint32]bool{}
		for _, p := range used {
			taken[p] = true
		}
		for place = size - 1; place < size && taken[place]; place-- {
		}
		if place >= size {
			return unix.ENOSPC
		}
	}
	b := rxnfc(insertRule, 0)
	r.put(b, place)
	return c.call(b)
}

// Delete implements Classifier.
func (c driverClassifier) Delete(place uint32) error {
	b := rxnfc(deleteRule, 0)
	binary.NativeEndian.PutUint32(b[atPlace:], place)
	return c.call(b)
}
