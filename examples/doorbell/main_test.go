// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(try.Run(m)) }

// reader has the records of a node that serves "inbox", as they are read.
func reader(ctx context.Context, n *try.Nodes) <-chan string {
	all := make(chan string, 1000)
	go func() {
		defer close(all)
		_ = consume(ctx, n.Home, n.Region(), func(r []byte) { all <- string(r) })
	}()
	return all
}

// record i is of several frames, and is recognized if any part of it is another's.
func record(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%03d.", i), slot/4-i) }

func newProducer(ctx context.Context, t *testing.T, n *try.Nodes) *producer {
	t.Helper()
	p := &producer{peer: n.Peer(ctx)}
	if err := p.find(ctx); err != nil {
		t.Fatal(err)
	}
	return p
}

// Each record is read once, whole and in order, in a bad network.
func TestDoorbell(t *testing.T) {
	n, ctx := try.New(t, "inbox", size), try.Context(t)
	all, p := reader(ctx, n), newProducer(ctx, t, n)
	n.Faults(try.Bad)
	for i := range 100 {
		if err := p.put(ctx, record(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if got := <-all; got != string(record(i)) {
			t.Fatalf("record %d is %.20q, %d bytes", i, got, len(got))
		}
	}
	if rung := n.Word(doorbell).Load(); rung != 100 {
		t.Errorf("the doorbell rang %d times, want 100", rung)
	}
}

// When the home restarts, the records that it had not read are gone, and those written
// afterwards come in order, each once.
func TestRestart(t *testing.T) {
	n, ctx := try.New(t, "inbox", size), try.Context(t)
	p := newProducer(ctx, t, n)
	n.Faults(try.Bad)
	for i := range slots { // nobody reads
		if err := p.put(ctx, record(i)); err != nil {
			t.Fatal(err)
		}
	}
	n.Restart()
	all := reader(ctx, n)
	for i := slots; i < slots+50; i++ {
		if err := p.put(ctx, record(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := slots; i < slots+50; i++ {
		if got := <-all; got != string(record(i)) {
			t.Fatalf("record %d is %.20q, %d bytes", i, got, len(got))
		}
	}
	if rung := n.Word(doorbell).Load(); rung != 50 {
		t.Errorf("the doorbell of the new memory rang %d times, want 50", rung)
	}
}

// A record whose answer got lost is there, and the doorbell says so: it does not ring
// twice.
func TestLostAnswer(t *testing.T) {
	n, ctx := try.New(t, "inbox", size), try.Context(t)
	all, p := reader(ctx, n), newProducer(ctx, t, n)
	if err := n.Home.SetFaults(xdpfab.Faults{Loss: 1}); err != nil { // no answer comes
		t.Fatal(err)
	}
	call, leave := context.WithCancel(ctx)
	go func() {
		for n.Word(doorbell).Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		leave()
	}()
	if err := p.ring(call, record(0)); !errors.Is(err, xdpfab.ErrOutcomeUnknown) {
		t.Errorf("%v; want an unknown outcome", err)
	}
	if err := n.Home.SetFaults(xdpfab.Faults{}); err != nil {
		t.Fatal(err)
	}
	if err := p.find(ctx); err != nil || p.written != 1 {
		t.Errorf("%v; %d records are there, want 1", err, p.written)
	}
	if got := <-all; got != string(record(0)) {
		t.Errorf("the record is %.20q", got)
	}
}

// A full memory is written again when its owner has read.
func TestFull(t *testing.T) {
	n, ctx := try.New(t, "inbox", size), try.Context(t)
	p := newProducer(ctx, t, n)
	for range slots {
		if err := p.put(ctx, record(0)); err != nil {
			t.Fatal(err)
		}
	}
	short, leave := context.WithCancel(ctx)
	leave()
	if err := p.put(short, record(1)); err == nil {
		t.Error("a record was written over one that nobody has read")
	}
	all := reader(ctx, n)
	if err := p.put(ctx, record(1)); err != nil {
		t.Error(err)
	}
	for range slots {
		<-all
	}
	if got := <-all; !strings.HasPrefix(got, "001.") {
		t.Errorf("the last record is %.20q", got)
	}
}

func TestRun(t *testing.T) {
	*records = 20
	n, ctx := try.New(t, "", 0), try.Context(t)
	addr, err := home(ctx, n.Home)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(ctx, n.Client, addr); err != nil {
		t.Error(err)
	}
}
