// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/netip"
	"testing"
)

func TestRider(t *testing.T) {
	want := Rider{Session: 0x84838281, PSN: 0x94939291}
	for typ := Hello; typ <= Probe; typ++ {
		h := goodHeader(typ)
		h.Carry(want)
		got, _, reason := Parse(seal(h, payloadFor(typ, 64)))
		switch {
		case typ != Request && reason != ReasonBadFlags:
			t.Errorf("%v with a rider: %v", typ, reason)
		case typ == Request && (reason != ReasonOK || got.Rider() != want || got.Flags != FlagRetx|FlagRider):
			t.Errorf("%+v, %v: rider %+v, want %+v", got, reason, got.Rider(), want)
		}
	}
}

// Two headers lead the same way if both addresses are the same, whatever flow and class.
func TestSameWay(t *testing.T) {
	other := netip.MustParseAddr("10.9.9.9")
	for _, l := range links() {
		a, err := NewTemplate(l)
		if err != nil {
			t.Fatal(err)
		}
		changed := map[string]func(l *Link){
			"local MAC": func(l *Link) { l.Local[5] ^= 1 }, "remote MAC": func(l *Link) { l.Remote[5] ^= 1 }, "VLAN": func(l *Link) { l.VLAN ^= 2 },
		}
		if l.LocalIP.Is4() {
			changed["local IP"] = func(l *Link) { l.LocalIP = other }
			changed["remote IP"] = func(l *Link) { l.RemoteIP = other }
		}
		for name, change := range changed {
			m := l
			change(&m)
			if b, err := NewTemplate(m); err != nil || a.SameWay(&b) || b.SameWay(&a) {
				t.Errorf("%+v: another %s is the same way, %v", l, name, err)
			}
		}
		m := l
		if m.Class.DSCP ^= 1; l.VLAN > 0 {
			m.Class.PCP ^= 1
		}
		b, err := NewTemplate(m)
		b.SetFlow(1234)
		if err != nil || !a.SameWay(&b) || !b.SameWay(&a) {
			t.Errorf("%+v: another class and flow is another way, %v", l, err)
		}
	}
}
