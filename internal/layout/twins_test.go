// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layout

import (
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// TestTwinsAgree: packages that import nothing of ours repeat some definitions of other
// packages. Each must say the same as the one that it repeats.
func TestTwinsAgree(t *testing.T) {
	for _, twin := range []struct {
		name      string
		one, two  any
		where, at string
	}{
		{"number of datatypes", wire.NumDatatypes, int(atomic.NumDatatypes), "wire", "atomic"},
		{"operation read", wire.OpRead, uint8(atomic.Read), "wire.OpRead", "atomic.Read"},
		{"right to read", wire.AccessRead, uint8(mr.RemoteRead), "wire.AccessRead", "mr.RemoteRead"},
		{"right to write", wire.AccessWrite, uint8(mr.RemoteWrite), "wire.AccessWrite", "mr.RemoteWrite"},
		{"longest name", wire.MaxNameLen, mr.MaxName, "wire.MaxNameLen", "mr.MaxName"},
		{"lanes", wire.MaxLanes, bpf.Lanes, "wire.MaxLanes", "bpf.Lanes"},
		{"queues", wire.MaxQueues, bpf.MaxQueues, "wire.MaxQueues", "bpf.MaxQueues"},
		{"least MTU", wire.MinMTU, bpf.MinMTU, "wire.MinMTU", "bpf.MinMTU"},
		{"least MTU", wire.MinMTU, nic.MinMTU, "wire.MinMTU", "nic.MinMTU"},
		{"UDP port", wire.UDPPort, bpf.DefaultPort, "wire.UDPPort", "bpf.DefaultPort"},
		{"UDP port and EtherType", wire.UDPPort, wire.EtherType, "wire.UDPPort", "wire.EtherType"},
		{"base form", memory.FormOf(wire.VerbAtomic), atomic.Base, "memory.FormOf", "atomic.Base"},
		{"fetch form", memory.FormOf(wire.VerbFetch), atomic.Fetch, "memory.FormOf", "atomic.Fetch"},
		{"compare form", memory.FormOf(wire.VerbCompare), atomic.Compare, "memory.FormOf", "atomic.Compare"},
	} {
		if twin.one != twin.two {
			t.Errorf("%s: %v in %s, %v in %s: make them the same", twin.name, twin.one, twin.where, twin.two, twin.at)
		}
	}
	for n := range 256 {
		dt := atomic.Datatype(n)
		if one, two := wire.ElemSize(uint8(n)), dt.Size(); one != two {
			t.Errorf("%v: an element has %d bytes in package wire, %d in package atomic: make them the same", dt, one, two)
		}
	}
}
