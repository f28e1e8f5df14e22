// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"testing"
)

// Frames to further MAC addresses are taken as long as those are set.
func TestMACs(t *testing.T) {
	p := mustLoad(t, testConfig(), 1)
	setSocket(t, p, 0, testLane)
	bridge, other := ourMAC, ourMAC
	bridge[5]++
	other[0] ^= 4
	expect := func(step string, toBridge, toOther Reason) {
		t.Helper()
		for _, k := range kinds {
			for mac, want := range map[[6]byte]Reason{ourMAC: Redirect, bridge: toBridge, other: toOther} {
				packet := k.wrap(fab(3, 46))
				copy(packet, mac[:])
				if got := run(t, p, packet, nil); got != want {
					t.Errorf("%s: %s to %x: got %v, want %v", step, k.name, mac, got, want)
				}
			}
		}
	}
	for _, step := range []struct {
		name              string
		macs              [][6]byte
		toBridge, toOther Reason
	}{
		{"one", [][6]byte{bridge}, Redirect, PassMAC}, {"both", [][6]byte{bridge, other}, Redirect, Redirect},
		{"the other", [][6]byte{other, other}, PassMAC, Redirect}, {"none", nil, PassMAC, PassMAC},
	} {
		if err := p.SetMACs(step.macs); err != nil {
			t.Fatal(err)
		}
		expect(step.name, step.toBridge, step.toOther)
	}
	var many [][6]byte
	for n := range byte(MaxMACs) {
		many = append(many, [6]byte{2, 0, 0, 0, 1, n})
	}
	if err := p.SetMACs(many); err != nil {
		t.Error(err)
	}
	for name, macs := range map[string][][6]byte{"group": {{1}}, "nobody": {{}}, "many": append(many, bridge)} {
		if err := p.SetMACs(macs); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.Close()
	if err := p.SetMACs(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
