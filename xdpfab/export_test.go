// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "github.com/xdpfab/xdpfab/internal/port"

// SetFaults changes what happens to packets that a domain of a Pipe sends.
func (d *Domain) SetFaults(f port.Faults) { d.dev.(*pipeEnd).port.SetFaults(f) }
