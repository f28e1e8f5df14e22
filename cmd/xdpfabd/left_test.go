// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/resident"
	"github.com/xdpfab/xdpfab/mr"
)

// A start is refused for a key that a region has which goes on, and whose peers would
// reach another region by it. What is told to be added has the rights of the region.
func TestFitsLeft(t *testing.T) {
	left := resident.Left{Folder: "/bpf/n", Sizes: map[string][]int{"late": {4096}, "dark": {8192}}}
	for _, r := range []resident.Region{{Key: 7, Length: 4096, Access: uint32(mr.RemoteRead)},
		{Key: 8, Length: 8192, Access: uint32(mr.RemoteWrite), Auth: 5}} {
		r.Name.Name = map[uint64]string{7: "late", 8: "dark"}[r.Key]
		left.Registered = append(left.Registered, r)
	}
	const dark = "dark=8KiB:resident,wo"
	for flags, want := range map[string]string{
		"r=4KiB " + dark:                   "",
		"r=4KiB:key=7 " + dark:             `region "r" wants key 0x7, which region "late" has in what a former daemon has left in /bpf/n`,
		"r=4KiB:key=8 " + dark:             `region "r" wants key 0x8, which region "dark" has`,
		"r=4KiB:key=8 " + dark + ",key=9":  "",
		"late=4KiB:resident,key=7 " + dark: "",
		"r=4KiB":                           "add --region dark=8KiB:resident,wo,auth-key=FILE ",
		"late=8KiB:resident,ro " + dark:    "want late=4KiB:resident,ro;",
		"late=4KiB:ro " + dark:             "want late=4KiB:resident,ro;",
	} {
		var c Config
		for text := range strings.FieldsSeq(flags) {
			r, err := parseRegion(text)
			if err != nil {
				t.Fatal(err)
			}
			c.Regions = append(c.Regions, r)
		}
		err := c.fitsLeft(left)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %q", flags, err, want)
		}
	}
	var c Config
	if more := c.unnamed(left); len(more) != 2 || more[0].Name != "dark" || more[1].Access != mr.RemoteRead {
		t.Errorf("%+v: want each, by name and with its rights", more)
	}
}
