// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Resident regions are kept in the folder that was asked for, also those to come.
func TestPinFolder(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	resident := []RegionConfig{{Name: "hot", Backing: backingResident}}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Pin: "/sys/fs/bpf/node", Regions: resident}, "/sys/fs/bpf/node"},
		{Config{Pin: "/sys/fs/bpf/node", Regions: []RegionConfig{{Name: "r", Backing: backingMemfd}}}, "/sys/fs/bpf/node"},
		{Config{Pin: pinNone, Regions: resident}, ""},
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

// Root's daemon, started by hand beside the package, whose folder is that of its user,
// keeps resident regions in one of its own.
func TestPinFolderOfAnother(t *testing.T) {
	testnet.Require(t)
	at := t.TempDir()
	if got := ownRoot(at); got != at+"/xdpfab" {
		t.Errorf("without any: %s", got)
	}
	if err := os.Mkdir(at+"/xdpfab", 0o700); err != nil {
		t.Fatal(err)
	}
	if got := ownRoot(at); got != at+"/xdpfab" {
		t.Errorf("with its own: %s", got)
	}
	if err := os.Chown(at+"/xdpfab", nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if got := ownRoot(at); got != at+"/xdpfab-0" {
		t.Errorf("with another user's: %s", got)
	}
}

// A daemon that takes over keeps resident regions where the other one has them; one that
// is to keep them elsewhere does not take over.
func TestInheritPin(t *testing.T) {
	resident := []RegionConfig{{Name: "hot", Backing: backingResident}}
	for _, c := range []struct{ pin, theirs, want, refusal string }{
		{pinAuto, "/sys/fs/bpf/node", "/sys/fs/bpf/node", ""},
		{pinAuto, "", "", ""},
		{pinNone, "", "", ""},
		{"/sys/fs/bpf/node", "/sys/fs/bpf/node", "/sys/fs/bpf/node", ""},
		{"/sys/fs/bpf/a", "/sys/fs/bpf/b", "", "/sys/fs/bpf/b: want the same"},
		{pinNone, "/sys/fs/bpf/b", "", "--pin is none"},
		{"/sys/fs/bpf/a", "", "", "in none: want the same"},
	} {
		got, err := Config{Pin: c.pin, Regions: resident}.inheritPin(c.theirs)
		if got != c.want || (err == nil) != (c.refusal == "") || err != nil && !strings.Contains(err.Error(), c.refusal) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// What --pin and --leave refuse.
func TestPinRefused(t *testing.T) {
	for text, want := range map[string]string{
		`pin = "node"`:                 "the absolute path of a folder",
		"pin = \"none\"\nleave = true": "nothing to leave",
	} {
		if _, err := check("interface = \"eth0\"\n" + text + "\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
