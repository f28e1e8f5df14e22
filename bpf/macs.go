// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"fmt"
	"net"
)

// macKey is a MAC address as the program looks it up.
type macKey [8]byte

// SetMACs makes these the addresses, at most MaxMACs, that frames are taken for besides
// Config.MAC, from this moment on. They are not left to the next program (Adopt,
// TakeOver), which gets its own before it is in place.
func (p *Program) SetMACs(macs [][6]byte) error {
	want := map[macKey]struct{}{}
	for _, m := range macs {
		if m == [6]byte{} || m[0]&1 != 0 {
			return fmt.Errorf("bpf: %w: MAC %v is not a unicast address", ErrConfig, net.HardwareAddr(m[:]))
		}
		var k macKey
		copy(k[:], m[:])
		want[k] = struct{}{}
	}
	if len(want) > MaxMACs {
		return fmt.Errorf("bpf: %w: %d MAC addresses, want at most %d", ErrConfig, len(want), MaxMACs)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	return renew(p.objects.Macs, p.macs, want, "MAC address", func(k macKey) any { return net.HardwareAddr(k[:6]) })
}
