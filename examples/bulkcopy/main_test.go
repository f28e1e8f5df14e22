// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/examples/internal/try"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

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
		done := make(chan error)
		go func() { done <- send(ctx, peer, data) }()
		if lost {
			last := n.Word((header + 1<<20) / 8) // in the second half of a copy
			for was := last.Load(); last.Load() == was && ctx.Err() == nil; {
				time.Sleep(time.Millisecond)
			}
			n.Restart()
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if back, err := fetch(ctx, peer); err != nil || !bytes.Equal(back, data) {
			t.Errorf("memory lost: %t; %d of %d bytes came back, %v", lost, len(back), len(data), err)
		}
	}
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
