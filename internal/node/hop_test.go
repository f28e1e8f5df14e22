// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/port"
)

// A next hop that is not found means that the peer does not answer, which is said once.
func TestHopError(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		err    error
		text   string
		silent bool
	}{
		{port.ErrUnreachable, "peer does not answer: " + port.ErrUnreachable.Error(), true},
		{fmt.Errorf("10.0.0.9: %w", ErrHopSilent), "peer does not answer: 10.0.0.9: " + ErrHopSilent.Error(), true},
		{HopError(port.ErrUnreachable), "peer does not answer: " + port.ErrUnreachable.Error(), true},
		{other, "other", false},
	} {
		if got := HopError(c.err); got.Error() != c.text || errors.Is(got, errno.PeerSilent) != c.silent {
			t.Errorf("%v: %v, silent %t; want %s, %t", c.err, got, errors.Is(got, errno.PeerSilent), c.text, c.silent)
		}
	}
	if HopError(nil) != nil {
		t.Error("no error became one")
	}
}
