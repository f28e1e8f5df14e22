// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/bench"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Several peers have a part of the report each. A node that is among them by two
// addresses is refused: its words would grow by the additions of both.
func TestBenchSeveralPeers(t *testing.T) {
	nodes, err := xdpfab.NewNetwork(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Close() })
	_, err1 := nodes.Node(1).Serve("r", 4096)
	_, err2 := nodes.Node(2).Serve("r", 4096)
	_, err3 := nodes.Node(1).NewMailbox(xdpfab.MailboxAttr{Number: 5})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	first, second := nodes.Node(1).Name(0), nodes.Node(2).Name(0)
	n := &farNode{t: t}
	n.uses = nodes.Node(0)
	r := n.run("", n.line("bench "+first+" "+first+"/5 --region r --count 20 --op add")...)
	checkRefusal(t, "one node by two addresses", r, exitUsage,
		first+" and "+first+"/5 are one node, with the same region r: want each node once; --endpoints 2 has more sessions")
	if n.uses, err = nodes.Restart(0); err != nil { // the command has closed its domain
		t.Fatal(err)
	}
	r = n.run("", n.line("bench "+first+" "+second+" --region r --count 20 --op put --size 8 --both --endpoints 2 --json")...)
	var both bench.Report
	if err := json.Unmarshal([]byte(strings.TrimSpace(r.out)), &both); err != nil || r.code != 0 || len(both.Peers) != 2 ||
		both.Ops < 40 || both.Peer != first+","+second || both.Verification != "bytes" {
		t.Errorf("%+v, %+v, %v", r, both, err)
	}
}

// Where nobody but bench serve is, bench names its mailbox.
func TestBenchFindsItsServer(t *testing.T) {
	nodes, err := xdpfab.NewNetwork(2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Close() })
	_, err1 := nodes.Node(1).NewRegion("bench", 4096)
	_, err2 := nodes.Node(1).NewMailbox(xdpfab.MailboxAttr{Number: bench.Mailbox})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	server := nodes.Node(1).Name(0)
	n := &farNode{t: t, uses: nodes.Node(0)}
	checkRefusal(t, "bench serve", n.run("", n.line("bench "+server+" --region bench")...), exitFailed,
		"xdpfab: a program serves at "+server+"/7, as `xdpfab bench serve` does: give that address: connect on "+server)
}
