// SPDX-License-Identifier: Apache-2.0

package executor

import "testing"

// Executors of one engine have the same buffers, and a party has one share of them,
// whatever memory its sessions are about.
func TestWithMemory(t *testing.T) {
	const buffers = 8
	x, first, _, psn := asked(t, buffers)
	other := &echo{}
	y := x.WithMemory(other)
	second := y.Begin(1, params(), nil)
	out := make([]byte, 1500)
	for i := range uint32(2 * buffers) { // nothing is acknowledged
		request(first, psn+i, psn-1, "first", out)
		request(second, psn+i, psn-1, "second", out)
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	u := y.Usage()
	if u != x.Usage() || u.Parties != 1 || u.Answers.Lent == 0 || u.Answers.Lent > buffers/2 {
		t.Errorf("%+v and %+v; want one party with at most half of %d answers", x.Usage(), u, buffers)
	}
	if other.ran == 0 || string(other.payload) != "second" {
		t.Errorf("the other memory ran %d frames, %q the last", other.ran, other.payload)
	}
	first.Release()
	second.Release()
	if u := x.Usage(); u.Parties != 0 || u.Answers.Lent+u.Holds.Lent != 0 {
		t.Errorf("%+v is left", u)
	}
}
