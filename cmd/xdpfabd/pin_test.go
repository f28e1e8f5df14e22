// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"log/slog"
	"strings"
	"testing"
)

// Only resident regions are kept, and in the folder that was asked for.
func TestPinFolder(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	resident := []RegionConfig{{Name: "hot", Backing: backingResident}}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Pin: "/sys/fs/bpf/node", Regions: resident}, "/sys/fs/bpf/node"},
		{Config{Pin: "/sys/fs/bpf/node", Regions: []RegionConfig{{Name: "r", Backing: backingMemfd}}}, ""},
		{Config{Pin: pinNone, Regions: resident}, ""},
		{Config{Pin: pinAuto}, ""},
	} {
		if got := c.cfg.pinFolder(log); got != c.want {
			t.Errorf("%+v: %q, want %q", c.cfg, got, c.want)
		}
	}
	cfg := Config{Pin: pinAuto, Regions: resident, Interface: "eth0.7"}
	if got := cfg.pinFolder(log); got != "" && (!strings.HasPrefix(got, bpffs+"/xdpfab/") || !strings.HasSuffix(got, "/eth0:7")) {
		t.Errorf("by itself the daemon takes %q", got)
	}
}

// What --pin and --leave refuse.
func TestPinRefused(t *testing.T) {
	for text, want := range map[string]string{
		`pin = "node"`:                 "the absolute path of a folder",
		`pin = "/sys/fs/bpf/node"`:     "no resident region to keep there",
		`leave = true`:                 "no resident region to leave",
		"pin = \"none\"\nleave = true": "nothing to leave",
	} {
		if _, err := check("interface = \"eth0\"\n" + text + "\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
