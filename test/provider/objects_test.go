// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import "testing"

// Operations and receives wait for counters, and start in the order of their thresholds,
// once; what is cancelled never starts. With as little shared memory as there may be they
// wait for room as well.
func TestTriggers(t *testing.T) {
	w := newWorld(t)
	path := w.program("triggers")
	for name, params := range map[string][]string{"usual": nil, "least memory": leastMemory} {
		t.Run(name, func(t *testing.T) {
			w.params = params
			if got := w.end(w.start(0, path, w.net.B.IP4.String(), w.key(1), w.net.A.IP4.String())); got != "ok" {
				t.Errorf("said %q", got)
			}
		})
	}
}

// Endpoints share their receives: a message takes one wherever it was sent to. Scalable
// endpoints have several contexts, each with a name.
func TestContexts(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"shared", "scalable"} {
		path := w.program(name)
		for memory, params := range map[string][]string{"usual": nil, "least memory": leastMemory} {
			t.Run(name+", "+memory, func(t *testing.T) {
				w.params = params
				if got := w.end(w.start(0, path, w.net.A.IP4.String())); got != "ok" {
					t.Errorf("said %q", got)
				}
			})
		}
	}
}

// A completion queue that is full holds up what needs it, and nothing else; and that goes
// on as soon as a completion has been read, while the program makes no call.
func TestFullQueue(t *testing.T) {
	w := newWorld(t)
	if got := w.end(w.start(0, w.program("ends"), "full", w.net.A.IP4.String(), "0")); got != "ok" {
		t.Errorf("said %q", got)
	}
}
