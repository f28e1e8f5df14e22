// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// refused tells of a driver that has native XDP, and refuses it in the settings of the
// NIC: the daemon and the probe end with the driver's words and the remedy, and so do
// they where generic XDP is allowed. Forced to be generic, the other daemon serves.
func (p *nicPair) refused(t *testing.T) {
	s, err := p.ask()
	if err != nil {
		t.Fatal(err)
	}
	if i := s.Interface; i.XDP != "generic" || i.Copy != p.nic.Copy {
		t.Errorf("driver %s: %s XDP, %s; want generic XDP, %s, as was forced", i.Driver, i.XDP, i.Copy, p.nic.Copy)
	}
	words := p.words(t, refusals, s.Interface.Driver)
	for _, mode := range []string{"auto", "any"} {
		p.cannot(t, words, "--xdp", mode)
	}
	xdpfab(t, p.net.A, []string{"info", "--probe", p.net.A.IfName}).wants(5, words...)
}

// What a refusal has, by the driver: its words, if it has any, and the remedy.
var (
	refusals = map[string][]string{
		"virtio_net": {"Can't set XDP while host is implementing", "ctrl_guest_offloads=on"},
	}
	zeroCopyRefusals = map[string][]string{
		"virtio_net": {"zero-copy not supported", "iommu_platform=on", "want the copy mode auto or copy"},
		"vmxnet3":    {"zero-copy not supported", "want the copy mode auto or copy"},
	}
)

// words are those of a driver.
func (p *nicPair) words(t *testing.T, of map[string][]string, driver string) []string {
	t.Helper()
	words := of[driver]
	if words == nil {
		t.Fatalf("what a refusal of the driver %s has is not known: add it", driver)
	}
	return words
}

// copies tells of a driver with native XDP and without zero-copy, for this device: forced
// zero-copy is refused, with the remedy.
func (p *nicPair) copies(t *testing.T) {
	s, err := p.ask()
	if err != nil {
		t.Fatal(err)
	}
	p.cannot(t, p.words(t, zeroCopyRefusals, s.Interface.Driver), "--copy", "zero-copy")
}

// cannot starts a daemon on the client's side, which has to refuse.
func (p *nicPair) cannot(t *testing.T, words []string, flags ...string) {
	t.Helper()
	d := launch(t, p.net.A, t.TempDir()+"/"+socketName, flags...)
	d.wants(5, words...)
	if log := d.err.String(); strings.Contains(log, "has no native XDP") {
		t.Errorf("a refusal of settings is told as a lack: %s", log)
	}
	testnet.Eventually(t, "no XDP program is left", func() bool { return !attached(t, p.net.A) })
}
