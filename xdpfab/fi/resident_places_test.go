// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A peer that takes all places of resident sessions leaves some to others: its own
// sessions go back to the poller, and nobody notices but by latency.
func TestResidentPlacesAreShared(t *testing.T) {
	const places, greedy, honest = 8, 10, 4
	net := testnet.NewPair(t, testnet.Options{})
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18: see TestResidentRefused")
	}
	server := openOn(t, net.B, fi.DomainAttr{ResidentSessions: places})
	if _, err := server.NewResidentRegion("hot", 4096); err != nil {
		t.Fatal(err)
	}
	for number := range greedy + honest {
		ep, err := server.NewEndpoint(fi.EndpointAttr{Number: number})
		if err := errors.Join(err, ep.Enable()); err != nil {
			t.Fatal(err)
		}
	}
	client := openOn(t, net.A, fi.DomainAttr{})
	var words [greedy + honest]xdpfab.Remote[uint64] // each of a session of its own
	var sums [greedy + honest]uint64
	add := func(i int) {
		t.Helper()
		sums[i]++
		if v, err := words[i].Add(ctx(t), 1); v != sums[i] || err != nil {
			t.Fatalf("session %d: %d, %v; want %d", i, v, err, sums[i])
		}
	}
	dial := func(i int, addr string) {
		t.Helper()
		p, err := client.Dial(ctx(t), fmt.Sprintf("%s/%d", addr, i))
		if err != nil {
			t.Fatal(err)
		}
		words[i], err = xdpfab.Word[uint64](ctx(t), p, "hot", uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			add(i)
		}
	}
	for i := range greedy { // one party, by its IPv4 address
		dial(i, net.B.IP4.String())
	}
	if n := stat(t, server, "resident_sessions"); n != places-places/8 {
		t.Errorf("one party has %d of %d places, want all but %d", n, places, places/8)
	}
	for i := greedy; i < greedy+honest; i++ { // another one, by its IPv6 address
		before := stat(t, server, "resident_sessions")
		dial(i, net.B.IP6.String())
		testnet.Eventually(t, fmt.Sprintf("a place for session %d", i), func() bool {
			for i := range greedy {
				add(i)
			}
			add(i)
			return stat(t, server, "resident_sessions") > before
		})
	}
	if n := stat(t, server, "resident_sessions_returned"); n < 2 {
		t.Errorf("%d sessions went back to the poller, want 2 or more", n)
	}
	for i := range words {
		add(i)
	}
}

// What a former process left keeps its number of places, and a domain that wants
// another number says so.
func TestResidentPlacesStay(t *testing.T) {
	var log logged
	attr := fi.DomainAttr{ResidentSessions: 8, Log: slog.New(slog.NewTextHandler(&log, nil))}
	e := newEstate(t, testnet.NewPair(t, testnet.Options{}).B, attr, false)
	for want, times := range map[int]int{0: 0, 8: 0, 9: 1} {
		e.attr.ResidentSessions = want
		h := e.handOver()
		e.goOn(h)
		if n := log.count(fmt.Sprintf("has=8 wanted=%d", want)); n != times {
			t.Errorf("%d places wanted of 8: told %d times, want %d", want, n, times)
		}
	}
}
