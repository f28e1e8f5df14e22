// SPDX-License-Identifier: Apache-2.0

package calls_test

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func init() {
	calls.Open = func(t *testing.T) (*node.Stepper, func()) {
		a, b, err := xdpfab.Pipe(xdpfab.DomainAttr{Progress: fi.ProgressManual}, xdpfab.DomainAttr{})
		if err != nil {
			t.Fatal(err)
		}
		ep, err := b.NewEndpoint(xdpfab.EndpointAttr{})
		if err == nil {
			err = ep.Enable()
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := calls.Of(a.Domain).Dial(t.Context(), ep.Name())
		if err != nil {
			t.Fatal(err)
		}
		return p.Stepper, func() { _, _ = a.CloseAll(), b.CloseAll() }
	}
}
