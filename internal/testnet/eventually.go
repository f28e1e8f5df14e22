// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"testing"
	"time"
)

// Patience is the time after which an event that has to happen counts as hanging.
// It is long, so that no verdict depends on how busy the machine is.
const Patience = 60 * time.Second

// Eventually waits until the condition holds, and fails the test when Patience has
// passed. The parameter what names the expected event for that failure.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", Patience, what)
		}
	}
}
