// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// An operation that gets no answer since the interface of its own node is down, has no
// carrier or has lost its address says so, and blames the peer for nothing; so do
// programs behind a daemon, and those on UDP sockets.
func TestVethOwnFault(t *testing.T) {
	testnet.SkipOnNICs(t, "an interface that anyone sets down")
	const here = "the cause is on this node: interface veth0 "
	for name, c := range map[string]struct {
		command string
		other   bool // at the other end
		ip      bool // dialled by IP address
		want    string
	}{
		"down":       {"link set dev veth0 down", false, true, here + "is down: "},
		"down, MAC":  {"link set dev veth0 down", false, false, here + "is down: "},
		"no carrier": {"link set dev veth0 down", true, true, here + "has no carrier: "},
		"no address": {"address del %s/24 dev veth0", false, true, here + "no longer has "},
	} {
		for _, by := range []string{"XDP", "a daemon", "UDP sockets"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				if by == "UDP sockets" && !c.ip {
					t.Skip("a MAC address is no address of UDP sockets")
				}
				t.Parallel()
				attr := fi.DomainAttr{GiveUp: 300 * time.Millisecond}
				if by == "UDP sockets" {
					attr.Transport = fi.TransportUDP
				}
				a, b, pair := onVeth(t, 1, attr, attr)
				if by == "a daemon" {
					a = guestOf(t, a, fi.DomainAttr{})
				}
				addr := b.Name(0)
				if c.ip {
					addr = pair.B.IP4.String()
				}
				p, err := a.Dial(ctx(t), addr)
				if err != nil {
					t.Fatal(err)
				}
				w, err := xdpfab.Word[uint64](ctx(t), p, "r", 0)
				if err != nil {
					t.Fatal(err)
				}
				if c.command = strings.ReplaceAll(c.command, "%s", pair.A.IP4.String()); c.other {
					testnet.IP(t, pair.B, c.command)
				} else {
					testnet.IP(t, pair.A, c.command)
				}
				// the domain may notice the change only after some operations
				testnet.Eventually(t, "an operation fails", func() bool { _, err = w.Add(ctx(t), 1); return err != nil })
				if !errors.Is(err, fi.ErrPeerSilent) {
					t.Fatalf("%v, want ErrPeerSilent", err)
				}
				var text string
				if err := pair.A.Do(func() error { text = fmt.Sprint(err); return nil }); err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(text, c.want) || strings.Contains(text, "likely causes") {
					t.Errorf("%s, want %q", text, c.want)
				}
			})
		}
	}
}
