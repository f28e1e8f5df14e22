// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"bytes"
	_ "embed" // of drivers.json
	"encoding/json"
	"slices"
	"strings"
)

// Limits are what is known of a driver: one row of drivers.json. Whatever the driver
// itself reports, or the kernel when it is tried, goes before the row.
//
// The fields have these users. Errors of steering need Rules; Plan, `xdpfab info` and
// the errors need XDP, Redirect, MTU, Off, Channels and Needs; the choice of buffers
// needs ZeroCopyUnit; an MTU above one buffer needs FragsMTU (the largest MTU at all),
// Segments, and MTU (up to which the program need not take fragments).
type Limits struct {
	// Driver is the name that `ethtool -i` prints.
	Driver string `json:"driver"`
	// Evidence is "tried" if a run of xdpfab has shown the row, on that version of
	// Linux, or "source" if somebody has read it in the driver.
	Evidence string `json:"evidence"`
	Linux    string `json:"linux"`
	// XDP is "native", "generic" (the driver has none of its own) or "lower": the
	// driver hands its program to the interfaces below, where AF_XDP sockets of this
	// one receive nothing.
	XDP string `json:"xdp"`
	// Redirect is whether a native program can redirect to AF_XDP sockets.
	Redirect bool `json:"redirect,omitempty"`
	ZeroCopy bool `json:"zero_copy,omitempty"`
	// ZeroCopyUnit, if not 0, is what the driver rounds its receive buffers down to
	// with zero-copy, bytes: it truncates longer packets.
	ZeroCopyUnit int `json:"zero_copy_unit,omitempty"`
	// MTU is the largest at which the driver takes a native program that cannot read
	// fragments (SEC("xdp")); 0 if it sets no limit.
	MTU int `json:"mtu,omitempty"`
	// FragsMTU is the largest at which it takes one that can (SEC("xdp.frags")),
	// whose sockets get a packet in several buffers; 0 if it takes none above MTU.
	// 65535 means that the interface's own limit is the only one.
	FragsMTU int `json:"frags_mtu,omitempty"`
	// Segments is how many buffers a packet may have with zero-copy; 0 means one.
	Segments int `json:"segments,omitempty"`
	// RXRing is the entries of a receive ring that this driver needs with zero-copy;
	// 0 for the advice of docs/tuning.md.
	RXRing int `json:"rx_ring,omitempty"`
	// Channels is "combined" if all must be, "half" if at most half of the most may
	// be in use, "equal half" if there must be as many to receive as to send besides;
	// empty for any.
	Channels string `json:"channels,omitempty"`
	// Off lists the offloads, by the kernel's names, that keep a native program away.
	Off []string `json:"off,omitempty"`
	// Unset is whether the driver refuses settings with EOPNOTSUPP, as if it had no
	// native XDP.
	Unset bool `json:"unset,omitempty"`
	// Rules are those with which `xdpfabd --steer` chooses queues; nil if unknown.
	Rules *Rules `json:"rules,omitempty"`
	// Needs are further conditions that xdpfab cannot look up.
	Needs []Need `json:"needs,omitempty"`
	Note  string `json:"note,omitempty"`
}

// Rules says which rules a driver takes: on EtherTypes, and on UDP destination ports. It
// has evidence of its own, since most NICs that take some were never tried.
type Rules struct {
	Evidence string `json:"evidence"`
	Ether    bool   `json:"ether,omitempty"`
	UDP      bool   `json:"udp,omitempty"`
	Note     string `json:"note,omitempty"`
}

// of says for people what the table has, with the name of the interface.
func (r *Rules) of(ifname string) string {
	text := "its driver takes rules on " + map[[2]bool]string{
		{}: "nothing", {true, false}: "EtherTypes", {false, true}: "UDP ports",
		{true, true}: "EtherTypes and UDP ports",
	}[[2]bool{r.Ether, r.UDP}]
	if r.Evidence == BySource {
		text += ", by source"
	}
	if r.Note != "" {
		text += ": " + strings.ReplaceAll(r.Note, "IFACE", ifname)
	}
	return text
}

// Need is a condition of a driver, and the command that fulfils it, with IFACE for the
// interface.
type Need struct {
	What    string `json:"what"`
	Command string `json:"command,omitempty"`
}

// The evidence of a row.
const (
	Tried    = "tried"
	BySource = "source"
)

// Anyhow is a [Limits.FragsMTU] without a limit: the MTU is the interface's own.
const Anyhow = 65535

// The values of Limits.XDP.
const (
	hasNative  = "native"
	hasGeneric = "generic"
	givesLower = "lower"
)

//go:embed drivers.json
var driversJSON []byte

// drivers is the table, which nothing changes.
var drivers = func() (rows []Limits) {
	d := json.NewDecoder(bytes.NewReader(driversJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&rows); err != nil {
		panic("nic: drivers.json: " + err.Error()) // TestDrivers
	}
	return rows
}()

// LimitsOf returns what is known of a driver; known is false if that is nothing.
func LimitsOf(driver string) (l Limits, known bool) {
	n := slices.IndexFunc(drivers, func(l Limits) bool { return l.Driver == driver })
	if n < 0 {
		return Limits{}, false
	}
	return drivers[n], true
}
