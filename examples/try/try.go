// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package try has the nodes that the tests of the examples run on: a home and a client in
// a network in memory. The test of a copied example can import it, too.
package try

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Patience is how long a test waits for what has to happen.
var Patience = testnet.Patience

// Run runs the tests of a package, for its TestMain, and returns the exit code, which is
// also not 0 if the tests leave goroutines behind.
func Run(m *testing.M) (code int) { return testnet.Run(m) }

// Eventually waits until the condition holds, and fails the test after Patience.
func Eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	testnet.Eventually(t, what, cond)
}

// Bad is a network that loses, repeats and reorders packets.
var Bad = xdpfab.Faults{Loss: 0.03, Duplicate: 0.03, Reorder: 0.05}

// Nodes are a home that serves a region, and a client, in a network in memory.
type Nodes struct {
	Client, Home *xdpfab.Domain
	Addr         string

	t      *testing.T
	net    *xdpfab.Network
	region *mr.Region
}

// The nodes by their numbers in the network.
const client, home = 0, 1

// New makes nodes that end with the test. Without a region the home serves nothing.
func New(t *testing.T, region string, size int) *Nodes {
	t.Helper()
	testnet.SkipOnNICs(t, "a network in memory")
	net, err := xdpfab.NewNetwork(2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := net.Close(); err != nil {
			t.Error(err)
		}
	})
	n := &Nodes{t: t, net: net, Client: net.Node(client), Home: net.Node(home)}
	if region != "" {
		n.serve(region, size)
	}
	return n
}

func (n *Nodes) serve(region string, size int) {
	n.t.Helper()
	s, err := n.Home.Serve(region, size)
	if err != nil {
		n.t.Fatal(err)
	}
	n.region, n.Addr = s.Region, s.Name()
}

// Restart kills the home at whatever it does, and has it serve new memory. The client can
// reach it when it does.
func (n *Nodes) Restart() {
	n.t.Helper()
	name, size := n.region.Name(), n.region.Len()
	err := n.net.Partition(home)
	if err == nil {
		n.Home, err = n.net.Restart(home)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.serve(name, size)
	n.net.Heal()
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

// Region is the home's memory, that of its present life.
func (n *Nodes) Region() *mr.Region { return n.region }

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
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}
