// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/bench"
	"github.com/xdpfab/xdpfab/internal/load"
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

func TestBench(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct {
		args  string
		adds  bool
		words int
	}{
		{"--count 200", true, 1},
		{"--count 200 --op add --progress manual", true, 1},
		{"--count 100 --op read", false, 1},
		{"--count 100 --op cswap", false, 1},
		{"--count 5000 --mode throughput", true, 1},
		{"--count 5000 --mode throughput --op add --window 64 --endpoints 3 --spread", true, 4096},
		{"--duration 50ms --mode throughput --progress manual --endpoints 2 --spread", true, 4096},
	} {
		got := mustRun[bench.Report](n, "bench PEER --region r --warmup 5ms "+c.args)
		if !got.Verified || got.Growth != got.Acknowledged || (got.Growth >= got.Ops) != c.adds || got.Words != c.words || got.Ops == 0 {
			t.Errorf("%s: %+v", c.args, got)
		}
		if f := strings.Fields(c.args); f[0] == "--count" && fmt.Sprint(got.Ops) != f[1] {
			t.Errorf("%s: %d operations measured", c.args, got.Ops)
		}
	}
	r := n.run("", n.line("bench PEER --region r --count 10 --op put --size all --mode throughput --csv --percentiles 75")...)
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); r.code != 0 || len(lines) != 1+14 || !strings.Contains(lines[0], ",p75_ns,") ||
		!strings.Contains(lines[14], ",put,,65536,") {
		t.Errorf("%+v", r)
	}
	r = n.run("", n.line("bench PEER --region r --count 10 --op get --size 8,4KiB")...)
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); r.code != 0 || len(lines) != 4 || !strings.HasPrefix(lines[3], "4 KiB") {
		t.Errorf("%+v", r)
	}
	if r := n.run("", n.line("bench PEER --region r --count 10 --warmup 0s")...); r.code != 0 || !strings.Contains(r.out, "verified") {
		t.Errorf("%+v", r)
	}
	if r := n.interrupt("bench PEER --region r --duration 1h --mode throughput", func() {}); r.code != 0 || !strings.Contains(r.out, "verified") || !strings.Contains(r.out, " s, then interrupted: ") {
		t.Errorf("interrupted: %+v", r)
	}
	if r := n.interrupt("bench PEER --region r --duration 1h --json", func() {}); r.code != 0 || !strings.Contains(r.out, `"interrupted":true`) {
		t.Errorf("interrupted: %+v", r)
	}
	if r := n.interrupt("bench PEER --region r --duration 1h --csv", func() {}); r.code != 0 || r.err != "xdpfab: interrupted: the last row is of a part of its run\n" {
		t.Errorf("interrupted: %+v", r)
	}
}

// Another program that writes the words makes the verification fail.
func TestBenchNoticesForeignWrites(t *testing.T) {
	n := newNode(t)
	r := n.interrupt("bench PEER --region r --duration 1h", func() { binary.LittleEndian.PutUint64(n.mem.Bytes(), 1<<40) })
	checkRefusal(t, "bench", r, exitFailed, "verification failed: the words of r grew by")
}

// A run whose region is withdrawn says that, though its operations know the key alone.
func TestBenchNoticesAnEndedRegion(t *testing.T) {
	n := newNode(t)
	r := n.interrupt("bench PEER --region r --duration 1h", func() {
		if err := n.region.Close(); err != nil {
			t.Error(err)
		}
	})
	checkRefusal(t, "bench", r, exitUnknown, "region r has been withdrawn or registered anew during the run: peer restarted")
}

func TestWork(t *testing.T) {
	n := newNode(t)
	for _, w := range workloads {
		for range 2 { // the second time on top of the first
			got := mustRun[workReport](n, "work "+w.name+" PEER --region r --clients 4 --rounds 50")
			if !got.Exact || got.Got != got.Want {
				t.Errorf("%+v", got)
			}
		}
	}
	if n := binary.LittleEndian.Uint64(n.mem.Bytes()[wordCounter*load.WordSize:]); n != 400 {
		t.Errorf("counter %d, want 400", n)
	}
}
