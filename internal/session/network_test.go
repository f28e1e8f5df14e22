// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"
)

// A queue of others is not taken for a long path once any round trip was short.
func TestNetworkBase(t *testing.T) {
	const configured = 50 * time.Microsecond
	var n *Network
	for _, c := range []struct {
		name string
		took time.Duration // 0: nothing more
		want time.Duration
	}{
		{"nothing known", 0, configured},
		{"all paths are long", 300 * time.Microsecond, 300 * time.Microsecond},
		{"a longer one changes nothing", 900 * time.Microsecond, 300 * time.Microsecond},
		{"one short path", 20 * time.Microsecond, configured},
		{"a queue does not hide it", 700 * time.Microsecond, configured},
	} {
		if n.took(int64(c.took)); n.base(configured) != int64(c.want) {
			t.Errorf("%s: base of %v, want %v", c.name, time.Duration(n.base(configured)), c.want)
		}
		if n == nil {
			n = new(Network)
		}
	}
	far := &Network{shortest: int64(time.Second)}
	if b := far.base(configured); b != int64(longestBase) {
		t.Errorf("base of %v, want at most %v", time.Duration(b), longestBase)
	}
}
