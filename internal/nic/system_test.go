// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"testing"
)

func TestMachine(t *testing.T) {
	s, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	if s.Kernel == "" || len(s.Features) != len(features) || len(s.Capabilities) != len(capabilities) {
		t.Errorf("%+v", s)
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		release string
		present int // of the features
	}{
		{"4.19.0", 0}, {"5.4.0-150-generic", 1}, {"5.9.16", 2}, {"5.10.1", 3}, {"5.15", 5}, {"6.1", 6}, {"6.3.0", 7}, {"6.4.0", 8}, {"6.13.0", 9}, {"6.18.1", 11},
		{"7.0", 11}, {"banana", 11},
	} {
		n := 0
		for _, f := range featuresOf(c.release) {
			if f.Present {
				n++
			}
		}
		if n != c.present {
			t.Errorf("%s: %d features; want %d", c.release, n, c.present)
		}
	}
}
