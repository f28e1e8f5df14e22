// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// newNetwork returns a network of nodes that each serve a region "w" of their own.
func newNetwork(t *testing.T, nodes int, attr ...xdpfab.DomainAttr) *xdpfab.Network {
	t.Helper()
	w, err := xdpfab.NewNetwork(nodes, attr...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(w.Close(), w.Close()); err != nil {
			t.Error(err)
		}
	})
	for i := range nodes {
		if _, err := w.Node(i).Serve("w", 64); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// wordOn returns a handle of node i on a word of node j.
func wordOn(t *testing.T, w *xdpfab.Network, i, j int, options ...xdpfab.HandleOption) xdpfab.Remote[uint64] {
	t.Helper()
	p, err := w.Node(i).Dial(ctx(t), w.Node(j).Name(0))
	if err != nil {
		t.Fatal(err)
	}
	h, err := xdpfab.Word[uint64](ctx(t), p, "w", uint64(i), options...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The error of a region that a peer does not have says which it has.
func TestWordOfAnotherName(t *testing.T) {
	w := newNetwork(t, 2)
	p, err := w.Node(0).Dial(ctx(t), w.Node(1).Name(0))
	if err != nil {
		t.Fatal(err)
	}
	word := func(name, want string) {
		t.Helper()
		_, err := xdpfab.Word[uint64](ctx(t), p, name, 0)
		if !errors.Is(err, xdpfab.ErrNoRegion) || !errors.Is(err, xdpfab.ErrNotExecuted) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	word("none", `no memory region of this name: the peer has "w"`)
	if _, err := w.Node(1).Serve("counters", 64); err != nil {
		t.Fatal(err)
	}
	word("Counter", `no memory region of this name, did you mean "counters"?: the peer has "counters", "w"`)
}

// Every node reaches every other one and itself through the switch, at the same time and
// under faults, and nothing runs twice.
func TestNetwork(t *testing.T) {
	const nodes, each = 4, 50
	w := newNetwork(t, nodes)
	bad := xdpfab.Faults{Loss: 0.05, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.05}
	var all sync.WaitGroup
	for i := range nodes {
		for j := range nodes {
			if i < j {
				if err := w.SetFaults(i, j, bad); err != nil {
					t.Fatal(err)
				}
			}
			h := wordOn(t, w, i, j)
			all.Go(func() {
				for n := range uint64(each) {
					if got, err := h.Add(ctx(t), 1); got != n+1 || err != nil {
						t.Errorf("%d to %d: %d, %v, want %d", i, j, got, err, n+1)
						return
					}
				}
			})
		}
	}
	all.Wait()
}

// A node that crashes and comes back is another life to those that use it, and to no
// other. A handle that binds itself goes on in new memory.
func TestNetworkRestart(t *testing.T) {
	w := newNetwork(t, 3)
	h, auto, other := wordOn(t, w, 0, 1), wordOn(t, w, 0, 1, xdpfab.AutoRebind()), wordOn(t, w, 0, 2)
	guarded, err := h.Guard(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []xdpfab.Remote[uint64]{h, other} {
		if n, err := h.Add(ctx(t), 7); n != 7 || err != nil {
			t.Fatal(n, err)
		}
	}
	name := w.Node(1).Name(0)
	if err := errors.Join(w.Crash(1), w.Crash(1)); err != nil {
		t.Fatal(err)
	}
	if err := w.Node(1).Err(); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("the dead node's domain: %v", err)
	}
	d, err := w.Restart(1)
	if err != nil {
		t.Fatal(err)
	}
	if d != w.Node(1) || d.Name(0) != name {
		t.Errorf("the next life is at %s, want %s", d.Name(0), name)
	}
	if _, err := d.Serve("w", 64); err != nil {
		t.Fatal(err)
	}
	<-guarded.Done()
	for range 2 {
		_, err := h.Add(ctx(t), 1)
		checkText(t, "after the restart", err, ", with Rebind or Lookup", xdpfab.ErrPeerRestarted)
	}
	if n, err := auto.Add(ctx(t), 1); n != 1 || err != nil {
		t.Errorf("a handle that binds itself: %d, %v", n, err)
	}
	if err := h.Rebind(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if n, err := h.Load(ctx(t)); n != 1 || err != nil {
		t.Errorf("after Rebind: %d, %v", n, err)
	}
	if n, err := other.Load(ctx(t)); n != 7 || err != nil {
		t.Errorf("on a node that lives: %d, %v", n, err)
	}
}

// Memory of the program's own is there in the next life, and nobody writes to it before
// it is registered again.
func TestNetworkRestartKeepsMemory(t *testing.T) {
	w, err := xdpfab.NewNetwork(2)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	m, err := mr.Alloc(64, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	serve := func(d *xdpfab.Domain) {
		t.Helper()
		ep, err := d.NewEndpoint(xdpfab.EndpointAttr{})
		_, err2 := d.Register(m, mr.Options{Name: "w", Access: mr.RemoteRead | mr.RemoteWrite})
		if err := errors.Join(err, err2, ep.Enable()); err != nil {
			t.Fatal(err)
		}
	}
	serve(w.Node(1))
	h := wordOn(t, w, 0, 1)
	if n, err := h.Add(ctx(t), 7); n != 7 || err != nil {
		t.Fatal(n, err)
	}
	d, err := w.Restart(1)
	if err != nil {
		t.Fatal(err)
	}
	serve(d)
	if _, err := h.Add(ctx(t), 1); !errors.Is(err, xdpfab.ErrPeerRestarted) {
		t.Errorf("after the restart: %v", err)
	}
	if err := h.Rebind(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if n, err := h.Add(ctx(t), 1); n != 8 || err != nil {
		t.Errorf("%d, %v, want 8", n, err)
	}
}

// A partition separates nodes and no others. An operation that is given up in it settles
// when it heals, and ends as after a restart if its target died meanwhile.
func TestNetworkPartition(t *testing.T) {
	w := newNetwork(t, 3, xdpfab.DomainAttr{GiveUp: 2 * time.Second}, xdpfab.DomainAttr{}, xdpfab.DomainAttr{})
	h, lost, other := wordOn(t, w, 0, 1), wordOn(t, w, 0, 2), wordOn(t, w, 1, 2)
	if err := w.Partition(0); err != nil {
		t.Fatal(err)
	}
	if n, err := other.Add(ctx(t), 1); n != 1 || err != nil {
		t.Errorf("on the same side: %d, %v", n, err)
	}
	ended := make(chan error)
	var second uint64
	go func() {
		var err error
		second, err = lost.Add(ctx(t), 1)
		ended <- err
	}()
	n, err := h.Add(ctx(t), 1)
	err2 := <-ended
	for _, err := range []error{err, err2} {
		if !errors.Is(err, xdpfab.ErrOutcomeUnknown) || !errors.Is(err, xdpfab.ErrPeerSilent) {
			t.Errorf("across the partition: %v", err)
		}
	}
	d, err3 := w.Restart(2)
	if err3 != nil {
		t.Fatal(err3)
	}
	if _, err := d.Serve("w", 64); err != nil {
		t.Fatal(err)
	}
	w.Heal()
	if _, err = xdpfab.Settle(ctx(t), n, err); !errors.Is(err, xdpfab.ErrNotExecuted) {
		t.Errorf("healed: %v, want ErrNotExecuted", err)
	}
	if _, err = xdpfab.Settle(ctx(t), second, err2); !errors.Is(err, xdpfab.ErrPeerRestarted) {
		t.Errorf("healed, of a node that restarted: %v", err)
	}
}

// The faults of a link are those of its packets in one direction, and of no others.
func TestNetworkFaults(t *testing.T) {
	w := newNetwork(t, 2)
	own, err := w.Node(0).Serve("own", 64)
	if err != nil {
		t.Fatal(err)
	}
	cell, err := own.Region.Uint64(0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Node(1).Dial(ctx(t), own.Name())
	if err != nil {
		t.Fatal(err)
	}
	h, err := xdpfab.Word[uint64](ctx(t), p, "own", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SetFaults(0, 1, xdpfab.Faults{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	add := h.StartAdd(ctx(t), 5)
	testnet.Eventually(t, "the request arrives", func() bool { return cell.Load() == 5 })
	over, cancel := context.WithCancel(ctx(t))
	cancel()
	n, err := add.Wait(over)
	if !errors.Is(err, xdpfab.ErrOutcomeUnknown) {
		t.Errorf("without an answer: %d, %v", n, err)
	}
	if err := w.SetFaults(0, 1, xdpfab.Faults{Delay: time.Microsecond}); err != nil {
		t.Fatal(err)
	}
	if n, err = xdpfab.Settle(ctx(t), n, err); n != 5 || err != nil {
		t.Errorf("with answers: %d, %v, want 5", n, err)
	}
}

// What makes no network is refused.
func TestNetworkRefused(t *testing.T) {
	for _, n := range []int{-1, 0, 1025} {
		if _, err := xdpfab.NewNetwork(n); err == nil {
			t.Errorf("a network of %d nodes", n)
		}
	}
	if _, err := xdpfab.NewNetwork(3, xdpfab.DomainAttr{}, xdpfab.DomainAttr{}); err == nil {
		t.Error("two attributes for three nodes")
	}
	if _, err := xdpfab.NewNetwork(3, xdpfab.DomainAttr{}, xdpfab.DomainAttr{}, xdpfab.DomainAttr{Window: -1}); err == nil {
		t.Error("a node with a window of -1")
	}
	w := newNetwork(t, 2)
	for _, i := range []int{-1, 2} {
		_, err := w.Restart(i)
		for what, err := range map[string]error{"restart": err, "crash": w.Crash(i), "partition": w.Partition(0, i),
			"faults": w.SetFaults(0, i, xdpfab.Faults{})} {
			if err == nil {
				t.Errorf("%s of node %d of 2", what, i)
			}
		}
	}
	for field, f := range map[string]xdpfab.Faults{
		"Loss of 1.1": {Loss: 1.1}, "Corrupt of -0.1": {Corrupt: -0.1}, "Reorder of NaN": {Reorder: math.NaN()}, "Delay of -1ns": {Delay: -1},
	} {
		if err := w.SetFaults(0, 1, f); err == nil || !strings.HasPrefix(err.Error(), "xdpfab: Faults."+field+": want ") {
			t.Errorf("faults with %s: %v", field, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.Restart(0); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("restart in a closed network: %v", err)
	}
}

// A number that no node has is a mistake of the program, and the panic says which numbers
// there are.
func TestNodeOutOfRange(t *testing.T) {
	w := newNetwork(t, 2)
	for _, i := range []int{-1, 2, 7} {
		func() {
			defer func() {
				want := fmt.Sprintf("xdpfab: node %d of a network of 2: want 0..1", i)
				if got := fmt.Sprint(recover()); got != want {
					t.Errorf("Node(%d): %s; want %s", i, got, want)
				}
			}()
			w.Node(i)
		}()
	}
	if w.Node(1) == nil { // the network goes on
		t.Error("node 1 is nil")
	}
}

// What a cable in memory cannot be is refused, and what it has no use for is not.
func TestNetworkAttributes(t *testing.T) {
	for name, attr := range map[string]xdpfab.DomainAttr{
		"Transport udp": {Transport: fi.TransportUDP},
		"Borrow":        {Borrow: true},
	} {
		if _, err := xdpfab.NewNetwork(2, attr); !errors.Is(err, xdpfab.ErrNotImplemented) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want a refusal that names it", name, err)
		}
	}
	newNetwork(t, 2, xdpfab.DomainAttr{Queues: 2, Spread: true, Transport: fi.TransportAuto})
}
