// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
)

// stat peers shows a page, says what it leaves out, and gets all pages when asked for.
func TestStatPeers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	const count = 2*control.MostPeers + 5
	verbs := control.PeersVerbs(func() (all []host.PeerInfo) {
		for i := range count {
			all = append(all, host.PeerInfo{Peer: fmt.Sprintf("10.0.%d.%d", i/256, i%256), Role: "target", State: "open", Ops: uint64(i)})
		}
		of := func(e, ops int) host.PeerInfo {
			return host.PeerInfo{Peer: fmt.Sprintf("10.0.0.3/%d", e), Role: "initiator", Endpoint: 9, State: "open", Sessions: 2, Ops: uint64(ops),
				Frames: 5, FramesResent: 4, BytesSent: 600, BytesReceived: 700, InFlight: 1, RTT: 12345, Silence: 1500 * time.Millisecond}
		}
		all[3] = of(7, 11)
		return append(all, of(8, 20))
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	l, err := control.Listen(t.Context(), path, control.Access{})
	if err != nil {
		t.Fatal(err)
	}
	source := func() (control.Status, error) { return control.Status{}, nil }
	go func() {
		served <- control.ServeListener(ctx, l, control.Service{Source: source, Verbs: verbs})
	}()
	n := newNode(t)
	r := n.run("", "stat", "peers", "--control", path)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if r.code != 0 || len(lines) != 1+100+2 || lines[102] != fmt.Sprintf("100 of %d peers, behind 0: see more with --limit and --skip", count) {
		t.Errorf("%d, %d lines: %s", r.code, len(lines), r.out)
	}
	if row := strings.Join(strings.Fields(lines[4]), " "); row != "10.0.0.3 initiator 2 4 31 10 8 1200 1400 2 12.3µs 1.5s" {
		t.Errorf("row %q", row)
	}
	r = n.run("", "stat", "peers", "--control", path, "--sort", "ops", "--limit", "1", "--skip", "2", "--json")
	var p control.PeerNodes
	if err := json.Unmarshal([]byte(r.out), &p); err != nil || len(p.Peers) != 1 || p.Peers[0].Ops != count-3 {
		t.Errorf("%v: %+v", err, r)
	}
	r = n.run("", "stat", "peers", "--control", path, "--limit", "0", "--json")
	if err := json.Unmarshal([]byte(r.out), &p); err != nil || len(p.Peers) != count || p.Peers[count-1].Ops != count-1 {
		t.Errorf("all pages: %v, %d peers", err, len(p.Peers))
	}
	checkRefusal(t, "stat peers --sort size", n.run("", "stat", "peers", "--sort", "size"), exitUsage, "want one of peer, ops")
	checkRefusal(t, "stat peers --limit -1", n.run("", "stat", "peers", "--limit", "-1"), exitUsage, "want 0 or more")
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
