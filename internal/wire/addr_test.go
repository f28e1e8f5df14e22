// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestParseAddr(t *testing.T) {
	tests := []struct {
		text string
		want Addr
		form string // canonical; the text itself when empty
	}{
		{"02:00:00:00:00:0b", Addr{MAC: macB}, ""},
		{"02-00-00-00-00-0B/0", Addr{MAC: macB}, "02:00:00:00:00:0b"},
		{"02:00:00:00:00:0b/3", Addr{MAC: macB, Endpoint: 3}, ""},
		{"10.0.0.2", Addr{IP: ip4B}, ""},
		{"10.0.0.2/65535", Addr{IP: ip4B, Endpoint: 65535}, ""},
		{"10.0.0.2/63.3", Addr{IP: ip4B, Endpoint: 3, Lane: 63}, ""},
		{"10.0.0.2/1.0", Addr{IP: ip4B, Lane: 1}, ""},
		{"10.0.0.2/0.3", Addr{IP: ip4B, Endpoint: 3}, "10.0.0.2/3"},
		{"::ffff:10.0.0.2", Addr{IP: ip4B}, "10.0.0.2"},
		{"fd00::2", Addr{IP: ip6B}, ""},
		{"FD00:0::2/1.3", Addr{IP: ip6B, Endpoint: 3, Lane: 1}, "fd00::2/1.3"},
	}
	for _, tt := range tests {
		a, err := ParseAddr(tt.text)
		if err != nil || a != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", tt.text, a, err, tt.want)
		}
		if form := a.String(); form != tt.form && !(tt.form == "" && form == tt.text) {
			t.Errorf("%s: formatted %s", tt.text, form)
		}
		if a.IsIP() != (a.Kind() != Ethernet) {
			t.Errorf("%s: kind %v, but IsIP %v", tt.text, a.Kind(), a.IsIP())
		}
	}
}

func TestParseAddrRefuses(t *testing.T) {
	for text, hint := range map[string]string{
		"":                         "neither",
		"node-b":                   "neither",
		"10.0.0.2:80":              "leave out the port, which is 34997 on every node: 10.0.0.2",
		"10.0.0":                   "neither",
		"02:00:00:00:00:0b:5":      "want the endpoint number after a slash: 02:00:00:00:00:0b/5",
		"02:00:00:00:0b":           "neither",
		"00:00:00:00:00:00":        "zero MAC",
		"ff:ff:ff:ff:ff:ff":        "multicast or broadcast",
		"01:00:5e:00:00:01":        "multicast or broadcast",
		"fe80::1%eth0":             "leave out the zone",
		"0.0.0.0":                  "unicast",
		"::":                       "unicast",
		"224.0.0.1":                "unicast",
		"ff02::1":                  "unicast",
		"255.255.255.255":          "unicast",
		"10.0.0.2/":                "endpoint",
		"10.0.0.2/65536":           "endpoint",
		"10.0.0.2/-1":              "endpoint",
		"10.0.0.2/1/2":             "endpoint",
		"10.0.0.2/64.1":            "lane",
		"10.0.0.2/.1":              "lane",
		"10.0.0.2/1.":              "endpoint",
		"02:00:00:00:00:0b/1.2.3":  "endpoint",
		"02:00:00:00:00:0b:00/1.2": "neither",
	} {
		a, err := ParseAddr(text)
		if !errors.Is(err, ErrAddr) || !strings.Contains(err.Error(), hint) || a != (Addr{}) {
			t.Errorf("%q: %+v, %v; want an error that says %q", text, a, err, hint)
		}
	}
}

func FuzzAddr(f *testing.F) {
	for _, s := range []string{"02:00:00:00:00:0b/3", "10.0.0.2/1.3", "fd00::2", "::ffff:1.2.3.4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddr(s)
		if err != nil {
			return
		}
		if again, err := ParseAddr(a.String()); err != nil || again != a {
			t.Fatalf("%q: %+v formats as %q, which parses as %+v, %v", s, a, a, again, err)
		}
	})
}
