// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The daemon lists what it keeps when the program has ended, and withdraws it when it is
// told so. What a rule does not allow is refused in its name.
func TestKeptByDaemon(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	cfg.Guests = []GuestConfig{{Serve: "*", Limits: host.GuestLimits{Kept: 4096}}}
	p := servePipe(t, cfg)
	receive(t, conn)
	ctx := limited(t)
	g, err := xdpfab.Open(ctx, "pipe", xdpfab.DomainAttr{Control: cfg.Control, Attach: fi.AttachAlways})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "rule guest[0] (allow:kept=4KiB) of the daemon's configuration allows 4096"} {
		r, err := g.NewRegion([]string{"mine", "more"}[i], 4096)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Keep(r); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", r, err, want)
		}
	}
	c, err := control.Dial(cfg.Control)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var k control.Kept
	uid := uint32(os.Geteuid())
	withdraw := control.Withdraw{Name: "mine", UID: &uid}
	if err := c.Call(ctx, "withdraw", withdraw, &k); err == nil || !strings.Contains(err.Error(), "uses it") {
		t.Errorf("in use: %v", err)
	}
	if err := g.CloseAll(); err != nil {
		t.Error(err)
	}
	var list []control.Kept
	testnet.Eventually(t, "the program gone", func() bool {
		s, err := c.Status(ctx)
		list = s.Kept
		return err == nil && len(s.Guests) == 0
	})
	if len(list) != 1 || list[0].Name != "mine" || list[0].InUse || list[0].UID != uid {
		t.Errorf("kept: %+v", list)
	}
	if err := c.Call(ctx, "withdraw", control.Withdraw{Name: "mine"}, &k); err != nil || k.Name != "mine" {
		t.Errorf("%+v, %v", k, err)
	}
	if err := c.Call(ctx, "withdraw", withdraw, &k); err == nil || !strings.Contains(err.Error(), "xdpfab kept") {
		t.Errorf("twice: %v", err)
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
}

func TestMayWithdraw(t *testing.T) {
	k := control.Kept{KeptRegion: host.KeptRegion{Name: "a", UID: 1000001, Rule: "rule guest[3]"}}
	for _, uid := range []uint32{0, uint32(os.Geteuid()), 1000001} {
		if err := mayWithdraw(uid, k); err != nil {
			t.Error(err)
		}
	}
	if err := mayWithdraw(1000002, k); err == nil || !strings.Contains(err.Error(), "rule guest[3]") {
		t.Errorf("another user: %v", err)
	}
}

// The region that is meant must be the only one.
func TestPickKept(t *testing.T) {
	all := func() []control.Kept {
		return []control.Kept{{KeptRegion: host.KeptRegion{Name: "a", UID: 1}}, {KeptRegion: host.KeptRegion{Name: "a", UID: 2}}, {KeptRegion: host.KeptRegion{Name: "b", UID: 2}}}
	}
	two := uint32(2)
	if k, err := pick(all(), control.Withdraw{Name: "a", UID: &two}); err != nil || k.UID != 2 {
		t.Errorf("%+v, %v", k, err)
	}
	if k, err := pick(all(), control.Withdraw{Name: "b"}); err != nil || k.Name != "b" {
		t.Errorf("%+v, %v", k, err)
	}
	if _, err := pick(all(), control.Withdraw{Name: "a"}); err == nil || !strings.Contains(err.Error(), "--user") {
		t.Errorf("%v", err)
	}
}
