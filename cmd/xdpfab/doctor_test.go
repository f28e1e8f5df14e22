// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// doctor prints one JSON object, with a row that the table could have, and leaves nothing
// attached. An interface that cannot be opened says why, in the driver's words.
func TestDoctor(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewVeth(t, testnet.Options{})
	doctor := func(want int) (r doctorReport) {
		var out, errs bytes.Buffer
		err := pair.A.Do(func() error {
			if got := (&app{out: &out, err: &errs}).run(context.Background(), []string{"doctor", "veth0"}); got != want {
				t.Errorf("code %d, want %d: %s", got, want, errs.String())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		return r
	}
	r := doctor(0)
	if r.Row == nil || r.Row.Driver != "veth" || r.Row.Evidence != nic.Tried || r.Row.XDP != "native" || !r.Row.Redirect ||
		r.Row.Linux == "" || !strings.HasPrefix(r.Kernel, r.Row.Linux) {
		t.Errorf("the row: %+v", r.Row)
	}
	if r.Known == nil || r.Card.Driver != "veth" || r.Probe == nil || r.Probe.XDP != "native" || len(r.Settings.Offloads) == 0 {
		t.Errorf("%+v", r)
	}
	if again := doctor(0); again.Interface.Attached != nil {
		t.Errorf("a program is left: %+v", again.Interface.Attached)
	}
	testnet.IP(t, pair.B, "link set veth0 mtu 9000")
	if r := doctor(5); r.Row != nil || !strings.Contains(r.Problem, "Peer MTU is too large") {
		t.Errorf("the peer has a large MTU: %+v, %q", r.Row, r.Problem)
	}
}

// A port of a bridge says what it belongs to, and which addresses are served.
func TestInfoOfPort(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewVeth(t, testnet.Options{})
	a := pair.A
	testnet.IP(t, a, "link add br0 address "+a.MAC.String()+" type bridge", "link set veth0 master br0",
		"addr flush dev veth0", "link set br0 up", "addr add 10.77.0.1/24 dev br0")
	info := func(interfaces ...string) string {
		var out, errs bytes.Buffer
		err := a.Do(func() error {
			if got := (&app{out: &out, err: &errs}).run(context.Background(), append([]string{"info"}, interfaces...)); got != 0 {
				t.Errorf("code %d: %s", got, errs.String())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, want := range []string{"br0 (bridge) 10.77.0.1/24", "its addresses are served here, too", "known limits", "(tried on Linux"} {
		if got := info("veth0"); !strings.Contains(got, want) {
			t.Errorf("info lacks %q:\n%s", want, got)
		}
	}
	testnet.IP(t, a, "link set br0 address 02:00:00:00:00:99")
	for _, want := range []string{"its addresses are served here, too, and its MAC address 02:00:00:00:00:99",
		"10.77.0.1/24"} {
		if got := info("veth0"); !strings.Contains(got, want) {
			t.Errorf("info lacks %q:\n%s", want, got)
		}
	}
}
