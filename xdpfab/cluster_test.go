// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/directory"
)

// names is a directory in a file, which tests rewrite.
type names struct {
	*directory.Directory

	t    *testing.T
	path string
}

func newNames(t *testing.T, text string) *names {
	t.Helper()
	n := &names{t: t, path: filepath.Join(t.TempDir(), "nodes")}
	n.write(text)
	var err error
	if n.Directory, err = directory.Open(t.Context(), directory.File(n.path)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func (n *names) write(text string) {
	n.t.Helper()
	if err := errors.Join(os.WriteFile(n.path+".new", []byte(text), 0o600), os.Rename(n.path+".new", n.path)); err != nil {
		n.t.Fatal(err)
	}
}

// now rewrites the file, and waits until the directory has read it.
func (n *names) now(text string) {
	n.t.Helper()
	changed := n.Changed()
	n.write(text)
	<-changed
	if err := n.Stale(); err != nil {
		n.t.Fatal(err)
	}
}

func newCluster(t *testing.T, d *xdpfab.Domain, n *names) *xdpfab.Cluster {
	c := xdpfab.NewCluster(d, n.Directory)
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A word is found by its region's name, at the node that has it.
func TestClusterFinds(t *testing.T) {
	w := newNetwork(t, 3)
	n := newNames(t, "one "+w.Node(1).Name(0)+" w\ntwo "+w.Node(2).Name(0)+" other\n")
	c := newCluster(t, w.Node(0), n)
	h, err := xdpfab.Word[uint64](ctx(t), c, "w", 3)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := h.Add(ctx(t), 5); got != 5 || err != nil {
		t.Errorf("Add: %d, %v", got, err)
	}
	p, err := c.Dial(ctx(t), "one")
	if err != nil {
		t.Fatal(err)
	}
	v, err := xdpfab.Vector[uint64](ctx(t), p, "w")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.At(3).Load(ctx(t)); got != 5 || err != nil {
		t.Errorf("by the node's name: %d, %v", got, err)
	}
	if _, err := c.Dial(ctx(t), "three"); !errors.Is(err, directory.ErrNoNode) {
		t.Errorf("node three: %v, want ErrNoNode", err)
	}
	_, err = xdpfab.Word[uint64](ctx(t), c, "none", 0)
	for _, want := range []error{directory.ErrNoNode, xdpfab.ErrNoRegion, xdpfab.ErrNotExecuted} {
		if !errors.Is(err, want) {
			t.Errorf("region none: %v, want %v", err, want)
		}
	}
	if _, err := xdpfab.Word[uint64](ctx(t), c, "other", 0); !errors.Is(err, xdpfab.ErrNoRegion) {
		t.Errorf("a region that the directory alone has: %v, want ErrNoRegion", err)
	}
	n.now("one " + w.Node(1).Name(0) + " w\ntwo " + w.Node(2).Name(0) + " w\n")
	if _, err := xdpfab.Word[uint64](ctx(t), c, "w", 0); !errors.Is(err, directory.ErrAmbiguous) {
		t.Errorf("a region at two nodes: %v, want ErrAmbiguous", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, region := range []string{"w", "none"} {
		_, err := xdpfab.Word[uint64](ctx(t), c, region, 0)
		if !errors.Is(err, xdpfab.ErrClosed) || !errors.Is(err, xdpfab.ErrNotExecuted) {
			t.Errorf("%s at a closed cluster: %v, want ErrClosed and ErrNotExecuted", region, err)
		}
	}
}

// Who closes a peer that a cluster has given out ends that use alone: the cluster dials
// again.
func TestClusterPeerIsClosed(t *testing.T) {
	w := newNetwork(t, 2)
	c := newCluster(t, w.Node(0), newNames(t, "one "+w.Node(1).Name(0)+" w\n"))
	for range 3 {
		p, err := c.Dial(ctx(t), "one")
		if err != nil {
			t.Fatal(err)
		}
		h, err := xdpfab.Word[uint64](ctx(t), c, "w", 3)
		if err == nil {
			_, err = h.Add(ctx(t), 5)
		}
		if err := errors.Join(err, p.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// The second address of a node is dialled when the first one does not answer.
func TestClusterTriesAddresses(t *testing.T) {
	w := newNetwork(t, 2, xdpfab.DomainAttr{GiveUp: 2 * time.Second})
	n := newNames(t, "one 02:00:00:00:99:99,"+w.Node(1).Name(0)+" w\ngone 02:00:00:00:99:99 x\n")
	c := newCluster(t, w.Node(0), n)
	if _, err := xdpfab.Word[uint64](ctx(t), c, "w", 0); err != nil {
		t.Error(err)
	}
	if _, err := c.Dial(ctx(t), "gone"); !errors.Is(err, xdpfab.ErrPeerSilent) {
		t.Errorf("node gone: %v, want ErrPeerSilent", err)
	} else if strings.Contains(err.Error(), "\n") {
		t.Errorf("an error of several lines: %q", err)
	}
}

// A handle follows a region to another node: by Rebind, or by itself.
func TestClusterFollowsMove(t *testing.T) {
	w := newNetwork(t, 3, xdpfab.DomainAttr{GiveUp: 2 * time.Second})
	n := newNames(t, "one "+w.Node(1).Name(0)+" w\n")
	c := newCluster(t, w.Node(0), n)
	strict, err := xdpfab.Word[uint64](ctx(t), c, "w", 0)
	if err != nil {
		t.Fatal(err)
	}
	auto, err := xdpfab.Word[uint64](ctx(t), c, "w", 0, xdpfab.AutoRebind())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Crash(1); err != nil {
		t.Fatal(err)
	}
	n.now("two " + w.Node(2).Name(0) + " w\n")
	// What was under way at the node that died has an outcome of its own; afterwards
	// nothing leaves, and the handle is bound to the new node.
	ended(ctx(t), func() error { _, err := auto.Add(ctx(t), 1); return err })
	if got, err := auto.Load(ctx(t)); err != nil || got > 1 {
		t.Errorf("by itself: %d, %v", got, err)
	}
	if _, err := strict.Load(ctx(t)); err == nil {
		t.Error("a handle that does not rebind by itself has gone to another node")
	}
	if err := strict.Rebind(ctx(t)); err != nil {
		t.Fatal(err)
	}
	before, err := strict.Load(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := auto.Add(ctx(t), 2); got != before+2 || err != nil {
		t.Errorf("both handles: %d, %v, want %d", got, err, before+2)
	}
}

// ended repeats a call until its outcome is known.
func ended(ctx context.Context, f func() error) {
	for ctx.Err() == nil && errors.Is(f(), xdpfab.ErrOutcomeUnknown) {
	}
}
