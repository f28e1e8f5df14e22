// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// SlowEnv is how many times as long things may take, a whole number, on a machine whose
// instructions are translated: package vm sets it for such guests.
const SlowEnv = "XDPFAB_SLOW"

// Slow is the number of SlowEnv, or 1.
var Slow = func() time.Duration {
	n, err := strconv.Atoi(os.Getenv(SlowEnv))
	if err != nil || n < 1 {
		return 1
	}
	return time.Duration(n)
}()

// Patience is the time after which an event that has to happen counts as hanging.
// It is long, so that no verdict depends on how busy the machine is.
var Patience = 60 * time.Second * Slow

// Eventually waits until the condition holds, and fails the test when Patience has
// passed. The parameter what names the expected event for that failure. Where things take
// longer it looks less often, or looking would take the time from them.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !cond(); time.Sleep(time.Millisecond * Slow) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", Patience, what)
		}
	}
}

// Within fails the test if f has not returned after five times Patience.
func Within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(5 * Patience):
		t.Fatalf("%s: still waiting after %v", what, 5*Patience)
	}
}
