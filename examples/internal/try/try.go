// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package try has the nodes that the tests of the examples run on.
package try

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Bad is a network that loses, repeats and reorders packets.
var Bad = xdpfab.Faults{Loss: 0.03, Duplicate: 0.03, Reorder: 0.05}

// Nodes are a home that serves a region, and a client, joined in memory.
type Nodes struct {
	Client, Home *xdpfab.Domain
	Addr         string

	t      *testing.T
	region *mr.Region
}

// New makes nodes that end with the test. Without a region the home serves nothing.
func New(t *testing.T, region string, size int) *Nodes {
	t.Helper()
	testnet.SkipOnNICs(t, "a Pipe")
	n := &Nodes{t: t}
	var err error
	if n.Client, n.Home, err = xdpfab.Pipe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Client.CloseAll(); err != nil {
			t.Error(err)
		}
		if err := n.Home.CloseAll(); err != nil {
			t.Error(err)
		}
	})
	if region != "" {
		s, err := n.Home.Serve(region, size)
		if err != nil {
			t.Fatal(err)
		}
		n.region, n.Addr = s.Region, s.Name()
	}
	return n
}

// Lose replaces the memory by another one, as a restart of the home does.
func (n *Nodes) Lose() {
	n.t.Helper()
	err := n.region.Close()
	if err == nil {
		n.region, err = n.Home.NewRegion(n.region.Name(), n.region.Len())
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// Faults sets what the network does from now on, to packets either way.
func (n *Nodes) Faults(f xdpfab.Faults) {
	n.t.Helper()
	for _, d := range []*xdpfab.Domain{n.Client, n.Home} {
		if err := d.SetFaults(f); err != nil {
			n.t.Fatal(err)
		}
	}
}

// Word is a word of the home's memory.
func (n *Nodes) Word(i int) *atomic.Uint64 {
	n.t.Helper()
	w, err := n.region.Uint64(i)
	if err != nil {
		n.t.Fatal(err)
	}
	return w
}

// Peer dials the home.
func (n *Nodes) Peer(ctx context.Context) *xdpfab.Peer {
	n.t.Helper()
	p, err := n.Client.Dial(ctx, n.Addr)
	if err != nil {
		n.t.Fatal(err)
	}
	return p
}

// Context ends with the patience of a test.
func Context(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testnet.Patience)
	t.Cleanup(cancel)
	return ctx
}
