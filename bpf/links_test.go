// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"testing"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// The link of a program is found also while other links are being made, which cannot be
// looked at until they are: then the kernel says EAGAIN.
func TestLinkOfWhileOthersAreMade(t *testing.T) {
	inPair(t, testnet.Options{}, func(pair *testnet.Pair, cfg Config) {
		p := mustLoad(t, cfg, 1)
		if err := p.Attach(pair.B.IfIndex, Native); err != nil {
			t.Fatal(err)
		}
		next := nextLink
		defer func() { nextLink = next }()
		busy := 0
		nextLink = func(it *link.Iterator) (bool, error) {
			if busy++; busy%2 == 1 {
				return false, unix.EAGAIN
			}
			return next(it)
		}
		if linkOf(p.ID(), pair.B.IfIndex) == 0 || busy < 2 {
			t.Errorf("the link of program %d is not found, in %d steps", p.ID(), busy)
		}
	})
}
