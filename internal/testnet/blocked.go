// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"runtime"
	"strings"
	"testing"
)

// Blocked waits until n goroutines wait in a function, or in something it called: they
// are in a select, a channel operation, a system call or the like, and not on their way
// there. The function is named as in a stack trace, such as "xdpfab.(*Peer).Lookup". A
// test calls it before it ends what they wait for, where a pause would only make it
// likely that they wait.
func Blocked(t testing.TB, n int, function string) {
	t.Helper()
	Eventually(t, function+" waits", func() bool { return Waiting(function) >= n })
}

// Waiting returns how many goroutines wait in a function: see Blocked.
func Waiting(function string) (n int) {
	for g := range strings.SplitSeq(Stacks(), "\n\n") {
		header, frames, _ := strings.Cut(g, "\n")
		_, state, _ := strings.Cut(header, "[")
		state, _, _ = strings.Cut(state, "]")
		state, _, _ = strings.Cut(state, ",")
		switch state {
		case "running", "runnable", "sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock":
			continue
		}
		if calls(frames, function) {
			n++
		}
	}
	return n
}

// calls reports whether a function is among the frames of a goroutine.
func calls(frames, function string) bool {
	for line := range strings.Lines(frames) {
		call, ok := strings.CutSuffix(strings.TrimSpace(line), ")")
		if ok && !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "created by ") {
			if name := call[:strings.LastIndexByte(call, '(')]; strings.HasSuffix("/"+name, "/"+function) {
				return true
			}
		}
	}
	return false
}

// Stacks returns the stacks of all goroutines.
func Stacks() string {
	for size := 1 << 20; ; size *= 2 {
		b := make([]byte, size)
		if n := runtime.Stack(b, true); n < size {
			return string(b[:n])
		}
	}
}
