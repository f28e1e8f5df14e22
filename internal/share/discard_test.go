// SPDX-License-Identifier: Apache-2.0

package share

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Descriptors whose closing takes forever hold up nobody.
func TestDiscard(t *testing.T) {
	free := make(chan struct{})
	var mu sync.Mutex
	closed := 0
	closeFD = func(fd int) error {
		if fd < 0 {
			<-free
		}
		mu.Lock()
		defer mu.Unlock()
		closed++
		return nil
	}
	defer func() {
		testnet.Eventually(t, "all are closed", func() bool { return discards.Load() == 0 })
		closeFD = unix.Close
	}()
	for range mostDiscards {
		CloseAside([]int{-1})
	}
	CloseAside([]int{7}) // by this goroutine, since there is no other any more
	mu.Lock()
	if closed != 1 {
		t.Errorf("%d descriptors are closed, want one", closed)
	}
	mu.Unlock()
	close(free)
	testnet.Eventually(t, "the others are closed", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return closed == mostDiscards+1
	})
}
