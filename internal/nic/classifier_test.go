// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// The structures of linux/ethtool.h, as a C compiler lays them out.
type (
	flowSpec struct { // struct ethtool_rx_flow_spec
		Type   uint32
		Value  [52]byte // union ethtool_flow_union
		Ext    flowExt
		Mask   [52]byte
		ExtM   flowExt
		_      [4]byte
		Cookie uint64
		Place  uint32
		_      [4]byte
	}
	flowExt struct { // struct ethtool_flow_ext
		_         [2]byte
		Dest      [6]byte
		Etype, TC [2]byte
		Data      [2]uint32
	}
	rxnfcHead struct { // struct ethtool_rxnfc, without its places
		Command, Flow uint32
		Data          uint64
		Spec          flowSpec
		Count         uint32
	}
)

// fakeKernel answers the ioctl for a NIC with some places for rules.
type fakeKernel struct {
	t      *testing.T
	places int
	chosen bool // the driver chooses the place
	rules  map[uint32]flowSpec
	table  []uint32
}

func (k *fakeKernel) ioctl(b []byte) error {
	k.t.Helper()
	ne := binary.NativeEndian
	switch command := ne.Uint32(b); command {
	case 0x38: // ETHTOOL_GRXFHINDIR: command, size, entries
		room := ne.Uint32(b[4:])
		if ne.PutUint32(b[4:], uint32(len(k.table))); room == 0 {
			return nil
		}
		for i, q := range k.table {
			ne.PutUint32(b[8+4*i:], q)
		}
		return nil
	case 0x39: // ETHTOOL_SRXFHINDIR
		n := int(ne.Uint32(b[4:]))
		for i := range k.table {
			if k.table[i] = uint32(i % 8); n > 0 {
				k.table[i] = ne.Uint32(b[8+4*i:])
			}
		}
		return nil
	default:
		return k.rule(command, b)
	}
}

func (k *fakeKernel) rule(command uint32, b []byte) error {
	var h rxnfcHead
	if size := binary.Size(h); len(b) < size || size != 188 {
		k.t.Fatalf("%d bytes for a structure of %d", len(b), size)
	}
	if err := binary.Read(bytes.NewReader(b), binary.NativeEndian, &h); err != nil {
		k.t.Fatal(err)
	}
	var err error
	switch command {
	case 0x2e: // ETHTOOL_GRXCLSRLCNT
		if h.Count, h.Data = uint32(len(k.rules)), 0; k.chosen {
			h.Data = 0x80000000
		}
	case 0x2f: // ETHTOOL_GRXCLSRULE
		if s, known := k.rules[h.Spec.Place]; known {
			h.Spec = s
		} else {
			err = unix.EINVAL
		}
	case 0x30: // ETHTOOL_GRXCLSRLALL
		for i, place := range slices.Sorted(maps.Keys(k.rules)) {
			binary.NativeEndian.PutUint32(b[188+4*i:], place)
		}
		h.Count, h.Data = uint32(len(k.rules)), uint64(k.places)
	case 0x31: // ETHTOOL_SRXCLSRLDEL
		delete(k.rules, h.Spec.Place)
	case 0x32: // ETHTOOL_SRXCLSRLINS
		if k.chosen {
			if h.Spec.Place != 0xffffffff {
				k.t.Errorf("place %#x, want any", h.Spec.Place)
			}
			h.Spec.Place = uint32(len(k.rules))
		}
		k.rules[h.Spec.Place] = h.Spec
	default:
		k.t.Fatalf("command %#x", command)
	}
	var out bytes.Buffer
	_ = binary.Write(&out, binary.NativeEndian, &h)
	copy(b, out.Bytes())
	return err
}

// What the kernel gets and gives is that of linux/ethtool.h: on `ethtool -N eth0 flow-
// type ether proto 0x88b5 action 2`, `flow-type udp4 dst-port 34997 action 2`, and udp6.
func TestClassifierBytes(t *testing.T) {
	for _, chosen := range []bool{false, true} {
		k := &fakeKernel{t: t, places: 16, chosen: chosen, rules: map[uint32]flowSpec{}, table: []uint32{0, 1, 2, 3, 4, 5, 6, 7}}
		if !chosen {
			k.rules[15] = flowSpec{Type: 0x01, Place: 15} // somebody's
		}
		c := driverClassifier{k.ioctl}
		for i, want := range []struct {
			r    Rule
			flow uint32
			at   int // of the two bytes in the union
		}{
			{Rule{EtherType: 0x88b5, Queue: 2}, 0x12, 12},
			{Rule{IP: 4, Port: 34997, Queue: 2}, 0x02, 10},
			{Rule{IP: 6, Port: 34997, Queue: 2}, 0x06, 34},
		} {
			if err := c.Insert(want.r); err != nil {
				t.Fatal(err)
			}
			place := uint32(14 - i)
			if chosen {
				place = uint32(i)
			}
			spec := flowSpec{Type: want.flow, Cookie: 2, Place: place}
			copy(spec.Value[want.at:], []byte{0x88, 0xb5})
			copy(spec.Mask[want.at:], []byte{0xff, 0xff})
			if got := k.rules[place]; got != spec {
				t.Errorf("%v: %+v\nwant %+v", want.r, got, spec)
			}
			if rules, err := c.Rules(); err != nil || rules[place] != want.r {
				t.Errorf("%v, %v; want %+v", rules, err, want.r)
			}
			narrower := spec
			narrower.Mask[0] = 0xff
			k.rules[place] = narrower
			if rules, _ := c.Rules(); rules[place] != (Rule{}) {
				t.Errorf("a rule on more than a number is taken for ours: %+v", rules[place])
			}
			narrower = spec
			narrower.ExtM.TC[1] = 1
			k.rules[place] = narrower
			if rules, _ := c.Rules(); rules[place] != (Rule{}) {
				t.Errorf("a rule on a VLAN is taken for ours: %+v", rules[place])
			}
			k.rules[place] = spec
		}
		if err := c.SetTable([]uint32{1, 0, 1, 0, 1, 0, 1, 0}); err != nil || k.table[0] != 1 || k.table[7] != 0 {
			t.Error(err, k.table)
		}
		if got, err := c.Table(); err != nil || !slices.Equal(got, k.table) {
			t.Error(got, err)
		}
		if err := c.SetTable(nil); err != nil || k.table[7] != 7 {
			t.Error(err, k.table)
		}
		for place := range k.rules {
			if err := c.Delete(place); err != nil || k.rules[place] != (flowSpec{}) {
				t.Error(err)
			}
		}
	}
}

// A NIC whose places are all taken says so.
func TestClassifierFull(t *testing.T) {
	k := &fakeKernel{t: t, places: 2, rules: map[uint32]flowSpec{0: {Type: 1}, 1: {Type: 1, Place: 1}}}
	if err := (driverClassifier{k.ioctl}).Insert(Rule{EtherType: 0x88b5}); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
}

// A loopback has neither a table nor rules.
func TestClassifierOfNone(t *testing.T) {
	c, done, err := OpenClassifier("lo")
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if _, err := c.Table(); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Error(err)
	}
	if _, err := c.Rules(); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Error(err)
	}
}
