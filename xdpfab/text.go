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

// of names a call of a method, for errors: Add of word 3 of region "counters".
func (r Remote[T]) of(method string) string {
	return fmt.Sprintf("%s of word %d of %s", method, r.index, r.bind.region())
}

// String says which region it is, for logs: region "counters" on 10.0.0.2.
func (v RemoteVector[T]) String() string {
	if v.bind == nil {
		return "no region"
	}
	return v.bind.String()
}

// String names the region that a handle is bound to, and its peer.
func (b *binding) String() string { return fmt.Sprintf("%s on %v", b.region(), b.at.Load().peer) }

// region names the region that a handle is bound to.
func (b *binding) region() string { return named(b.at.Load().RemoteRegion) }

// named names a region in an error.
func named(r RemoteRegion) string {
	if r.Name == "" {
		return "a region without a name"
	}
	return fmt.Sprintf("region %q", r.Name)
}
