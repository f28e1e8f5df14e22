// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/xsk"
)

// lending reports how many of the wanted queues are to be lent; empty for none.
func (w *Want) lending() string {
	if w.Lend == 0 {
		return ""
	}
	return fmt.Sprintf(", of which %d are to be lent", w.Lend)
}

// cannotLend refuses queues to lend where the kernel is too old.
func (s *System) cannotLend(queues int) error {
	if queues == 0 || !kernel.Lacks(s.Kernel, kernel.AdoptRings) {
		return nil
	}
	return fmt.Errorf("kernel is too old to lend queues: Linux %s, want %v or newer: %w", s.Kernel, kernel.AdoptRings,
		xsk.ErrUnsupported)
}
