// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "github.com/xdpfab/xdpfab/internal/port"

// SetFaults changes what happens to packets that a domain of a Pipe sends.
func (d *Domain) SetFaults(f port.Faults) { d.dev.(*pipeEnd).port.SetFaults(f) }

// Again ends a domain of a Pipe, with farewells to its peers or as if its process had
// been killed, and returns the next life of the node: without memory or endpoints.
func (d *Domain) Again(killed bool) (*Domain, error) {
	end := d.dev.(*pipeEnd)
	if killed {
		end.port.SetFaults(port.Faults{Loss: 1})
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	end.port.SetFaults(port.Faults{})
	f, err := NewFabric(d.attr)
	if err != nil {
		return nil, err
	}
	return f.adopt(&pipeEnd{port: end.port, mac: end.mac}, f.attr)
}
