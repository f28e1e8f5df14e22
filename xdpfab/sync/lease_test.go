// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"testing"
	"time"
)

// Nobody has the lock for sure once the context has ended, whatever is left of the lease:
// after a release the next program may hold it.
func TestLeftEndsWithContext(t *testing.T) {
	w := newWorld(t, 1, 1)
	m := newTestMutex(w, 1, testLease)
	if err := must(m.Lock(patient(t)))(t).Unlock(); err != nil { // new memory takes a lease
		t.Fatal(err)
	}
	m.lease = time.Hour
	for _, c := range []struct {
		name string
		end  func(h *Held, cancel func()) error
	}{
		{"released", func(h *Held, _ func()) error { return h.Unlock() }},
		{"context of the call", func(_ *Held, cancel func()) error { cancel(); return nil }},
		{"lost", func(h *Held, _ func()) error { h.lose(ErrLost); return nil }},
	} {
		ctx, cancel := context.WithCancel(patient(t))
		defer cancel()
		h := must(m.Lock(ctx))(t)
		if left := h.Left(); left <= 0 {
			t.Errorf("%s: %v left while the lock is held", c.name, left)
		}
		if err := c.end(h, cancel); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		<-h.Context().Done()
		if left, over := h.Left(), h.Until(); left > 0 || over.After(time.Now()) {
			t.Errorf("%s: %v left, until %v, after the context has ended", c.name, left, over)
		}
		_ = h.Unlock()
	}
}
