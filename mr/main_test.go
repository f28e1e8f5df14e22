// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// adopt returns Memory over n bytes of Go memory.
func adopt(t testing.TB, n int) *Memory {
	t.Helper()
	m, err := Adopt(make([]byte, n))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// register registers memory, to be closed with the test.
func register(t testing.TB, tab *Table, m *Memory, o Options) *Region {
	t.Helper()
	r, err := tab.Register(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// count returns the number of registered regions.
func (t *Table) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.index.Load().live
}
