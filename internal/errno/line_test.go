// SPDX-License-Identifier: Apache-2.0

package errno

import (
	"errors"
	"fmt"
	"testing"
)

// A text has one line, and the prefix once, at its beginning.
func TestLine(t *testing.T) {
	one, other := fmt.Errorf("xdpfab: peer a: %w", Closed), fmt.Errorf("xdpfab: peer b: %w", PeerSilent)
	for want, err := range map[string]error{
		"xdpfab: node n: peer a: closed":                          Line("xdpfab: node n: %w", one),
		"node n: peer a: closed":                                  Line("node n: %w", one),
		"xdpfab: peer a: closed; peer b: peer does not answer":    Join(one, nil, other),
		"xdpfab: n: peer a: closed; peer b: peer does not answer": Line("xdpfab: n: %w", errors.Join(one, other)),
	} {
		if err.Error() != want || !errors.Is(err, Closed) {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if err := Join(nil, one); err != one {
		t.Errorf("the only error became %v", err)
	}
	if err := Join(nil, nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}
