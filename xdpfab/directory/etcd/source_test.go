// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"
	"time"
)

// A process that lives is back before its lease ends, even if etcd returns just after an
// attempt has failed: after the longest pause the connection is made, and the lease is
// kept by a call.
func TestReconnectingFitsTTL(t *testing.T) {
	b := connecting.Backoff
	pause := time.Duration(float64(b.MaxDelay) * (1 + b.Jitter))
	if longest := pause + connecting.MinConnectTimeout + callLimit; longest >= TTL {
		t.Errorf("a process may be back %v after etcd, and its lease ends after %v", longest, TTL)
	}
	if b.BaseDelay <= 0 || b.BaseDelay > b.MaxDelay || b.Multiplier < 1 {
		t.Errorf("%+v: want pauses that grow from one of some length", b)
	}
}
