// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
)

func socketLinks() []Link {
	return []Link{
		{Medium: OnSocket, Kind: UDP4, LocalIP: netip.MustParseAddr("127.0.0.1"), RemoteIP: netip.MustParseAddr("127.0.0.2")},
		{Medium: OnSocket, Kind: UDP6, LocalIP: netip.MustParseAddr("fd00::1"), RemoteIP: netip.MustParseAddr("fd00::2"),
			Class: Class{DSCP: 46}},
	}
}

// A frame gets its way in front and loses it again; the answer takes the way back.
func TestSocketRoundTrip(t *testing.T) {
	for _, l := range socketLinks() {
		there, err := NewTemplate(l)
		if err != nil {
			t.Fatal(err)
		}
		there.SetFlow(7)
		frame := pattern(700)
		b := append(make([]byte, there.Len()), frame...)
		if n := there.Put(b, len(frame)); n != len(b) || there.Len() != WayLen || there.Kind() != l.Kind {
			t.Fatalf("%+v: packet of %d bytes, frame at %d, %v", l, n, there.Len(), there.Kind())
		}
		got, reason := OnSocket.Strip(b, MAC{9}, false)
		if reason != ReasonOK || !bytes.Equal(got, frame) {
			t.Fatalf("%+v: %v", l, reason)
		}
		from := OnSocket.Source(b)
		if want := (Source{Medium: OnSocket, Kind: l.Kind, RemoteIP: l.LocalIP, LocalIP: l.RemoteIP}); from != want {
			t.Fatalf("source %+v, want %+v", from, want)
		}
		back := from.Reply(l.Class)
		want := l
		want.LocalIP, want.RemoteIP = l.RemoteIP, l.LocalIP
		if got := back.Link(l.Class); got != want {
			t.Errorf("answer by %+v, want %+v", got, want)
		}
		if w := WayOf(b); w.DSCP != l.Class.DSCP || netip.AddrFrom16(w.To).Unmap() != l.RemoteIP {
			t.Errorf("%+v", w)
		}
		same, other := there, there
		if !back.Answers(b) || there.Answers(b) || !there.SameWay(&same) || there.SameWay(&back) {
			t.Error("the way back is not told from the way there")
		}
		if other.LeadsTo(MAC{}) {
			t.Error("a way to another node leads to this one")
		}
	}
}

func TestSocketToItself(t *testing.T) {
	ip := netip.MustParseAddr("127.0.0.1")
	own, err := NewTemplate(Link{Medium: OnSocket, Kind: UDP4, LocalIP: ip, RemoteIP: ip})
	if err != nil || !own.LeadsTo(MAC{1}) {
		t.Errorf("a node's own address does not lead to it: %v", err)
	}
}

func TestSocketRefuses(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.1")
	for name, l := range map[string]Link{
		"Ethernet": {Medium: OnSocket},
		"VLAN":     {Medium: OnSocket, Kind: UDP4, VLAN: 3, LocalIP: ip, RemoteIP: ip},
		"family":   {Medium: OnSocket, Kind: UDP6, LocalIP: ip, RemoteIP: ip},
		"unknown":  {Medium: 2, Kind: UDP4, LocalIP: ip, RemoteIP: ip},
	} {
		if _, err := NewTemplate(l); !errors.Is(err, ErrLink) {
			t.Errorf("%s: %v, want ErrLink", name, err)
		}
	}
	for n := range WayLen {
		if _, reason := OnSocket.Strip(make([]byte, n), MAC{}, false); reason != ReasonTruncated {
			t.Errorf("%d bytes: %v", n, reason)
		}
	}
}
