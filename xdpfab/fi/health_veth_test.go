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

// A library domain notices that its interface can no longer be used; operations
// under way and later ones say so.
func TestVethInterfaceLost(t *testing.T) {
	for name, command := range map[string]string{
		"deleted": "link del veth0", "another MAC": "link set veth0 address 02:11:22:33:44:55", "MTU lowered": "link set veth0 mtu 1300",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "deleted" {
				testnet.SkipOnNICs(t, "an interface that can be deleted")
			}
			a, b, pair := onVeth(t, 1, fi.DomainAttr{GiveUp: time.Hour}, fi.DomainAttr{})
			p, err := a.Dial(ctx(t), b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			w, err := xdpfab.Word[uint64](ctx(t), p, "r", 0)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			go func() {
				for {
					if _, err := w.Add(t.Context(), 1); err != nil {
						ended <- err
						return
					}
				}
			}()
			testnet.IP(t, pair.A, command)
			select {
			case err := <-ended:
				if !errors.Is(err, fi.ErrInterfaceLost) {
					t.Errorf("an operation under way: %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the operation does not end")
			}
			<-a.Done()
			if err := a.Err(); !errors.Is(err, fi.ErrInterfaceLost) {
				t.Errorf("Err: %v", err)
			}
			if _, err := a.Dial(ctx(t), b.Name(0)); !errors.Is(err, fi.ErrInterfaceLost) {
				t.Errorf("later: %v", err)
			}
		})
	}
}

// Raising the MTU and putting it back does no harm, and an address that is added to
// either side can be used at once.
func TestVethChangesSurvived(t *testing.T) {
	a, b, pair := onVeth(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
	p, err := a.Dial(ctx(t), pair.B.IP4.String())
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	add := func() {
		t.Helper()
		if _, err := w.Add(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
	}
	add()
	for _, side := range []*testnet.Side{pair.A, pair.B} {
		testnet.IP(t, side, "link set veth0 mtu 1501")
		add()
		testnet.IP(t, side, "link set veth0 mtu 1500")
		add()
	}
	testnet.IP(t, pair.B, "addr add 10.79.0.2/24 dev veth0")
	testnet.IP(t, pair.A, "addr add 10.79.0.1/24 dev veth0")
	other, err := a.Dial(ctx(t), "10.79.0.2")
	if err != nil {
		t.Fatal(err)
	}
	if w, err = xdpfab.Word[uint64](ctx(t), other, "r", 0); err != nil {
		t.Fatal(err)
	}
	add()
	if a.Err() != nil || b.Err() != nil {
		t.Errorf("%v, %v", a.Err(), b.Err())
	}
}

// The error of a node that serves no UDP says so, and how its node is reached. A node
// that does not answer by raw Ethernet either has no such hint.
func TestVethDeafToUDP(t *testing.T) {
	a, b, pair := onVeth(t, 1, fi.DomainAttr{GiveUp: 500 * time.Millisecond}, fi.DomainAttr{EthernetOnly: true})
	for endpoint := range 2 { // one that is there, and one that the node refuses
		to := fmt.Sprintf("%s/%d", pair.B.IP4, endpoint)
		testnet.Eventually(t, "the hint about UDP", func() bool { // a busy machine may be silent by raw Ethernet, too
			_, err := a.Dial(ctx(t), to)
			if !errors.Is(err, fi.ErrPeerSilent) {
				t.Fatalf("%s: %v", to, err)
			}
			return strings.Contains(err.Error(), "UDP is off there") && strings.Contains(err.Error(), "--udp=false") && strings.Contains(err.Error(), b.Name(uint16(endpoint)))
		})
	}
	if err := b.CloseAll(); err != nil {
		t.Fatal(err)
	}
	_, err := a.Dial(ctx(t), pair.B.IP4.String())
	saysOfSilence(t, err, `xdpfab: connect on \S+: not executed: peer does not answer: silent for \S+ and \d+ packets over UDP, next hop `+
		b.Name(0)+`; it has never answered: likely causes: \(1\).*; \(2\) a firewall.*; \(3\).*; `+"`xdpfab diagnose "+pair.B.IP4.String()+
		" -i "+a.Interface().Name+"` tries each step of the way")
}

// Looking for a next hop that does not answer takes no longer than the peer itself
// may: the kernel would go on for 3 s.
func TestVethSilentHop(t *testing.T) {
	a, _, pair := onVeth(t, 1, fi.DomainAttr{GiveUp: 100 * time.Millisecond}, fi.DomainAttr{})
	start := time.Now()
	_, err := a.Dial(ctx(t), pair.B.IP4.Next().String())
	kernelFirst := time.Since(start) >= 3*time.Second // the machine has stopped this process for long
	if !errors.Is(err, fi.ErrPeerSilent) || !kernelFirst && !strings.Contains(err.Error(), "no answer within the give-up time") {
		t.Errorf("%v", err)
	}
}
