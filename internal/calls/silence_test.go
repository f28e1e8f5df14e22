// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
)

// throughDaemon is a device of which only the description is asked for.
type throughDaemon struct{ node.Device }

func (throughDaemon) Info() node.InterfaceInfo {
	return node.InterfaceInfo{Name: "eth0", Daemon: "/run/xdpfabd/eth0.sock"}
}

// Likely causes that the cause tells already, as that of a context does which an earlier
// silence has ended, are not told again.
func TestCausesOnce(t *testing.T) {
	at := Silence{Cause: errno.PeerSilent, Peer: "10.0.0.2", Node: &node.Node{Dev: throughDaemon{}}}
	again := at
	again.Cause = fmt.Errorf("the lease is lost: %w", &at)
	if got := again.Error(); strings.Count(got, "likely causes:") != 1 {
		t.Error(got)
	}
}

// A daemon knows alone how long a peer has been silent. That it had answered, the program
// knows: then nothing is wrong with the address.
func TestHeardBefore(t *testing.T) {
	for heard, want := range map[bool]string{
		false: "gave it up: likely causes: (1) neither xdpfabd nor another program serves there",
		true:  "gave it up; it had answered before: likely causes: (1) its program, its machine or the link has failed",
	} {
		s := &Silence{Cause: errno.PeerSilent, Peer: "10.0.0.2", Node: &node.Node{Dev: throughDaemon{}}}
		if heard {
			HeardBefore(fmt.Errorf("round trip: %w", s))
		}
		if got := s.Error(); !strings.Contains(got, want) {
			t.Errorf("heard %t: %s, want %q", heard, got, want)
		}
	}
}
