// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/mr"
)

// NewResidentMemory makes zeroed memory of size bytes in a BPF map, for Register. Atomic
// operations of peers on the regions over it, on integers of 8 to 64 bits, are executed
// by the XDP program, without a poller; all others work too, more slowly. Such a region
// begins at the first byte of the memory. The name is for bpftool(8). The memory is the
// caller's to close.
//
// The first call loads the program that executes. A session of a peer is the program's
// once it uses such a region, and stays so, with all that the poller has to do for it.
// Others stay with the poller: those that have begun before the call, those beyond
// DomainAttr.ResidentSessions, and those to endpoints with messages, events or counters
// of what peers do.
//
// It takes Linux 5.18 and an interface that is the domain's own. Otherwise the error
// matches ErrNotImplemented or EOPNOTSUPP, says what is missing, and nothing else is
// affected.
func (d *Domain) NewResidentMemory(name string, size int) (*mr.Memory, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	d.node.Mu.Lock()
	defer d.node.Mu.Unlock()
	m, err := residence.Of(d.node).ResidentMemory(name, size)
	if err != nil {
		return nil, errno.Line("xdpfab: resident memory %q: %w", name, err)
	}
	return m, nil
}

// NewResidentRegion is NewRegion over memory of NewResidentMemory.
func (d *Domain) NewResidentRegion(name string, size int) (*mr.Region, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	d.node.Mu.Lock()
	defer d.node.Mu.Unlock()
	m, err := residence.Of(d.node).ResidentMemory(name, size)
	if err != nil {
		return nil, errno.Line("xdpfab: region %q: %w", name, err)
	}
	return d.node.RegisterOwned(m, name, size)
}
