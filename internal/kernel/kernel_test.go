// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kernel

import "testing"

func TestParse(t *testing.T) {
	for release, want := range map[string]Version{
		"4.19.0": {4, 19}, "5.4.0-150-generic": {5, 4}, "5.9.0-rc1": {5, 9}, "5.15": {5, 15}, "6.18.1": {6, 18}, "10.0": {10, 0},
		"7.2.13+deb14-cloud-amd64": {7, 2},
	} {
		if v, err := Parse(release); err != nil || v != want {
			t.Errorf("%s: %v, %v; want %v", release, v, err, want)
		}
	}
	for _, release := range []string{"", "banana", "6", "6.x"} {
		if v, err := Parse(release); err == nil {
			t.Errorf("%q is version %v", release, v)
		}
	}
}

func TestLacks(t *testing.T) {
	for release, want := range map[string]bool{
		"4.19.0": true, "5.8.18-generic": true, "5.9": false, "5.9.0-rc1": false, "6.1": false, "10.0": false,
		"": false, "linux": false, // unreadable
	} {
		if got := Lacks(release, BPFLink); got != want {
			t.Errorf("Linux %q lacks what 5.9 has: %v, want %v", release, got, want)
		}
	}
}

func TestRunningKernel(t *testing.T) {
	release, err := Release()
	if err != nil {
		t.Fatal(err)
	}
	v, err := Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	if next := (Version{v.Major, v.Minor + 1}); Before(v) || !Before(next) {
		t.Errorf("Linux %s: before %v: %v, before %v: %v", release, v, Before(v), next, Before(next))
	}
}
