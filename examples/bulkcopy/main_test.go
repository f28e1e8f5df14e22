// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(try.Run(m)) }

func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// A file comes whole through a bad network, also when the memory is lost in the middle.
func TestBulkCopy(t *testing.T) {
	n, ctx := try.New(t, "bulk", size), try.Context(t)
	peer := n.Peer(ctx)
	n.Faults(try.Bad)
	for _, lost := range []bool{false, true} {
		data := noise(2<<20 + 12345)
		for !copied(ctx, t, n, peer, data, lost) {
			data = noise(len(data)) // the copy was over before the memory was lost
		}
		if back, err := fetch(ctx, peer); err != nil || !bytes.Equal(back, data) {
			t.Errorf("memory lost: %t; %d of %d bytes came back, %v", lost, len(back), len(data), err)
		}
	}
}

// copied sends data, and reports whether the memory was lost in the middle, if that was
// wanted.
func copied(ctx context.Context, t *testing.T, n *try.Nodes, peer *xdpfab.Peer, data []byte, lost bool) bool {
	middle := n.Word((header + 1<<20) / 8)
	was, done := middle.Load(), make(chan error, 1)
	go func() { done <- send(ctx, peer, data) }()
	if lost {
		for middle.Load() == was && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		n.Faults(xdpfab.Faults{Loss: 1}) // so that the rest does not arrive meanwhile
		if len(done) > 0 {
			lost = false
		} else {
			n.Restart()
		}
		n.Faults(try.Bad)
		if !lost {
			return false
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return true
}

// A copy that is under way, or was changed, is not taken for a file.
func TestUnfinished(t *testing.T) {
	n, ctx := try.New(t, "bulk", size), try.Context(t)
	peer := n.Peer(ctx)
	if _, err := fetch(ctx, peer); err != errNothing {
		t.Errorf("of empty memory: %v", err)
	}
	if err := send(ctx, peer, noise(1000)); err != nil {
		t.Fatal(err)
	}
	n.Word(header / 8).Add(1)
	if _, err := fetch(ctx, peer); err != errNothing {
		t.Errorf("of a file that was changed: %v", err)
	}
}

func TestRun(t *testing.T) {
	*file = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(*file, noise(5000), 0o600); err != nil {
		t.Fatal(err)
	}
	n := try.New(t, "bulk", size)
	if err := run(try.Context(t), n.Client, n.Addr); err != nil {
		t.Error(err)
	}
}
