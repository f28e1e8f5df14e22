// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// throughDaemon is a device of which only the description is asked for.
type throughDaemon struct{ node.Device }

func (throughDaemon) OwnFault(wire.Addr) string { return "" }

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

// downHere is a device whose own interface is down.
type downHere struct{ throughDaemon }

func (downHere) OwnFault(wire.Addr) string { return "interface eth0 is down" }

// A fault of this node is the only cause that is told, and once.
func TestOwnFaultAlone(t *testing.T) {
	at := Silence{Cause: errno.PeerSilent, Peer: "10.0.0.2", Node: &node.Node{Dev: downHere{}}}
	const want = "peer does not answer: the daemon at /run/xdpfabd/eth0.sock gave it up: the cause is on this node: " +
		"interface eth0 is down"
	if got := at.Error(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	again := at
	again.Cause = fmt.Errorf("the lease is lost: %w", &at)
	if got := again.Error(); strings.Count(got, "is down") != 1 {
		t.Error(got)
	}
}

// Only a peer that did not answer long packets may have lost them for their length.
func TestLongPacketsLost(t *testing.T) {
	for _, c := range []struct {
		known *engine.Silence
		bytes int
		long  bool
	}{
		{nil, 8, false}, {nil, 4096, true},
		{&engine.Silence{Answered: true}, 4096, false}, {&engine.Silence{Answered: true, Long: true}, 8, true},
	} {
		s := &Silence{Cause: errno.PeerSilent, Peer: "10.0.0.2", Node: &node.Node{Dev: throughDaemon{}}, Known: c.known,
			Bytes: c.bytes, heard: true}
		if got := s.Error(); strings.Contains(got, "as long as the MTU") != c.long {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
