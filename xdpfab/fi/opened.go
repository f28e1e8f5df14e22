// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"net"
	"sync"

	"github.com/xdpfab/xdpfab/internal/node"
)

// opened are the domains of this process that are open on interfaces, with the place of
// each. GetInfo describes them in place of an interface that is in use.
var opened struct {
	sync.Mutex
	at map[node.Place]*Domain
}

// ours adds to an error of opening an interface that this process itself has it open, if
// it has.
func ours(ifname string, err error) error {
	i, unknown := net.InterfaceByName(ifname)
	if unknown != nil || instance(node.Here(i.Index)) == nil {
		return err
	}
	return fmt.Errorf("a domain of this process has %s, use that one, which GetInfo returns as DomainInfo.Instance, "+
		"or close it: %w: %w", ifname, ErrBusy, err)
}

// enter and leave note that a domain is open, and that it no longer is.
func (d *Domain) enter(p node.Place) {
	opened.Lock()
	defer opened.Unlock()
	if opened.at == nil {
		opened.at = map[node.Place]*Domain{}
	}
	opened.at[p] = d
	d.node.Place = p
}

func (d *Domain) leave() {
	opened.Lock()
	defer opened.Unlock()
	if opened.at[d.node.Place] == d {
		delete(opened.at, d.node.Place)
	}
}

// instance returns the domain that is open at a place, or nil. One whose interface
// was lost is not.
func instance(p node.Place) *Domain {
	opened.Lock()
	defer opened.Unlock()
	if d := opened.at[p]; d != nil && d.Err() == nil {
		return d
	}
	return nil
}
