// SPDX-License-Identifier: Apache-2.0

// Package fabrictest joins domains of package xdpfab to nodes, for tests of what stands
// on a node alone.
package fabrictest

import (
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Pipe is xdpfab.Pipe with a device in place of the second domain.
func Pipe(attr xdpfab.DomainAttr) (*xdpfab.Domain, node.Device, error) {
	a, b := node.NewPipe()
	d, err := node.DomainOn(a, attr)
	if err != nil {
		return nil, nil, err
	}
	return d.(*xdpfab.Domain), b, nil
}
