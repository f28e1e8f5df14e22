// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// waits is a function in which goroutines of TestBlocked wait.
type waits struct{ end chan struct{} }

//go:noinline
func (w *waits) here() { <-w.end }

//go:noinline
func (w *waits) there(fd int) { _, _ = unix.Read(fd, make([]byte, 1)) }

//go:noinline
func (w *waits) locked(mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
}

// A goroutine counts when it waits in the function, and not while it runs, waits for a
// mutex, or waits in a function with a longer name.
func TestBlocked(t *testing.T) {
	w := &waits{make(chan struct{})}
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	var mu sync.Mutex
	mu.Lock()
	var all sync.WaitGroup
	for range 3 {
		all.Go(w.here)
	}
	all.Go(func() { w.there(pipe[0]) })
	all.Go(func() { w.locked(&mu) })
	Blocked(t, 3, "testnet.(*waits).here")
	Blocked(t, 1, "testnet.(*waits).there")
	for _, function := range []string{"testnet.(*waits).locked", "waits).here", "testnet.(*waits).her", "testnet.TestBlocked"} {
		if n := Waiting(function); n != 0 {
			t.Errorf("%d goroutines wait in %s", n, function)
		}
	}
	close(w.end)
	mu.Unlock()
	_ = unix.Close(pipe[1])
	all.Wait()
	Eventually(t, "none waits", func() bool { return Waiting("testnet.(*waits).here") == 0 })
}
