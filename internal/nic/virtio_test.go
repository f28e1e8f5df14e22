// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/xsk"
)

// Whether a virtio device can have zero-copy is known from its features, and left open
// where they are not to be had.
func TestVirtioCopies(t *testing.T) {
	const bus = "0000:00:08.0"
	features := func(set ...int) string {
		b := []byte(strings.Repeat("0", 64) + "\n")
		for _, n := range set {
			b[n] = '1'
		}
		return string(b)
	}
	for _, c := range []struct {
		what, file, text, bus string
		want                  bool
	}{
		{"a device without the feature", "virtio2/features", features(5, 32), bus, true},
		{"a device with the feature", "virtio2/features", features(5, 32, 33), bus, false},
		{"a short list", "virtio2/features", "0101\n", bus, false},
		{"no list", "virtio2/vendor", "0x1af4\n", bus, false},
		{"another device", "virtio2/features", features(), "0000:00:0c.0", false},
		{"no address", "virtio2/features", features(), "", false},
	} {
		devices := t.TempDir()
		path := filepath.Join(devices, bus, c.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := virtioCopies(devices, c.bus); got != c.want {
			t.Errorf("%s: it copies: %v, want %v", c.what, got, c.want)
		}
	}
}

// A plan promises no zero-copy for a device that cannot have it, says why, and leaves
// all else as it is.
func TestPlanOfDeviceWithoutZeroCopy(t *testing.T) {
	i := Interface{Name: "eth0", Driver: "virtio_net", MTU: 1500, Up: true, Ethernet: true, RXQueues: 1, TXQueues: 1}
	i.SetFeatures(XDPBasic | XDPRedirect | XDPZeroCopy | XDPRXSG)
	for _, copies := range []bool{false, true} {
		i.copies = copies
		p := Plan{Mode: xsk.Auto}
		p.predict(&i)
		want := map[bool]string{false: "zero-copy", true: "copy"}[copies]
		if p.XDP != "native" || p.Copy != want || copies != strings.Contains(strings.Join(p.Notes, "\n"), "not for this device") {
			t.Errorf("a device that copies: %v: %s XDP, %s, %q", copies, p.XDP, p.Copy, p.Notes)
		}
	}
}
