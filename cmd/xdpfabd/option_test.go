// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/mr"
)

func TestParseRegion(t *testing.T) {
	base := defaultRegion()
	with := func(f func(*RegionConfig)) RegionConfig { r := base; f(&r); return r }
	for text, want := range map[string]RegionConfig{
		"counters=64KiB": with(func(r *RegionConfig) { r.Name, r.Size = "counters", 65536 }),
		"a=1:ro":         with(func(r *RegionConfig) { r.Name, r.Size, r.Access = "a", 1, mr.RemoteRead }),
		"a=1:wo,memfd":   with(func(r *RegionConfig) { r.Name, r.Size, r.Access, r.Backing = "a", 1, mr.RemoteWrite, "memfd" }),
		"a=8:resident":   with(func(r *RegionConfig) { r.Name, r.Size, r.Backing = "a", 8, "resident" }),
		"a=2GiB:key=0x10,huge=require": with(func(r *RegionConfig) {
			r.Name, r.Size, r.Key, r.Huge = "a", 2<<30, ptr(uint64(16)), mr.HugeRequire
		}),
		"a:backing=/x=y":           with(func(r *RegionConfig) { r.Name, r.Backing = "a", "/x=y" }),
		"a:ro,backing=/x":          with(func(r *RegionConfig) { r.Name, r.Access, r.Backing = "a", mr.RemoteRead, "/x" }),
		"a:b=4KiB":                 with(func(r *RegionConfig) { r.Name, r.Size = "a:b", 4096 }),
		`a=1:backing=/x\,y=1:z,ro`: with(func(r *RegionConfig) { r.Name, r.Size, r.Backing, r.Access = "a", 1, "/x,y=1:z", mr.RemoteRead }),
		"a=:backing=/x:y=z":        with(func(r *RegionConfig) { r.Name, r.Backing = "a", "/x:y=z" }),
	} {
		if got, err := parseRegion(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %+v; want %+v", text, err, got, want)
		}
	}
	for text, want := range map[string]string{
		"":                            "want name=size",
		"a":                           "want name=size",
		"=1":                          "name: ",
		"a=1q":                        "size: ",
		"a=1:rx":                      `"rx": want ro, wo`,
		"a=1:both":                    `"both", did you mean access=both?`,
		"a=1:backing=/x,y":            `"y": want ro, wo, rw, memfd, resident, key=…, access=…, backing=…, huge=… or auth-key=…; or write \, for a comma in a path`,
		"a:rx":                        "want name=size",
		"a=1:ro,":                     `"": want ro, wo`,
		"a=1:key=zz":                  "key: ",
		"a=1:ro,wo":                   `access: given twice, as "ro" and "wo"`,
		"a=1:key=1,access=both,key=2": "key: given twice",
	} {
		if _, err := parseRegion(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}
