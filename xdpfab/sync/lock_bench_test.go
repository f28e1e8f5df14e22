// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync_test

import (
	"context"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

// A lock that nobody else wants: its own work, beside that of two operations in memory.
func BenchmarkMutex(b *testing.B) {
	ctx := context.Background()
	at, end := start(ctx)
	defer end()
	lock, err := sync.NewMutex(ctx, at, time.Second)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		held, err := lock.Lock(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := held.Unlock(); err != nil {
			b.Fatal(err)
		}
	}
}
