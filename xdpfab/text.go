// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "fmt"

// String returns the address that was dialled.
func (p *Peer) String() string { return p.Addr() }

// String says which word it is, for logs: word 3 of region "counters" on 10.0.0.2.
func (r Remote[T]) String() string {
	if r.bind == nil {
		return "no word"
	}
	return fmt.Sprintf("word %d of %v", r.index, r.bind)
}

// String says which region it is, for logs: region "counters" on 10.0.0.2.
func (v RemoteVector[T]) String() string {
	if v.bind == nil {
		return "no region"
	}
	return v.bind.String()
}

// String names the region that a handle is bound to.
func (b *binding) String() string {
	at := b.at.Load()
	if at.Name == "" {
		return fmt.Sprintf("a region without a name on %v", at.peer)
	}
	return fmt.Sprintf("region %q on %v", at.Name, at.peer)
}
