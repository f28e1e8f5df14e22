// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// readAll reads a stream to its end.
func readAll(t *testing.T, from io.Reader) (all []Packet, totals Totals) {
	t.Helper()
	r := NewReader(from)
	for {
		p, end, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if end != nil {
			return all, *end
		}
		p.Data = bytes.Clone(p.Data)
		all = append(all, p)
	}
}

// Every packet that engines show is in the stream, unchanged and in the order of its
// engine, or is counted as dropped.
func TestEveryPacketIsThereOrCounted(t *testing.T) {
	const queues, each = 3, 20_000
	c, err := New(queues, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.rings {
		c.rings[i].memory = make([]byte, 1<<16) // so that some are dropped, and all places are used
	}
	out := new(bytes.Buffer)
	stop, quiet := make(chan struct{}), make(chan struct{})
	var engines sync.WaitGroup
	for q := range queues {
		engines.Go(func() {
			show, rnd := c.Tap(q), rand.New(rand.NewPCG(1, uint64(q)))
			for i := range each {
				packet := bytes.Repeat([]byte{byte(i)}, 8+rnd.IntN(1500))
				binary.LittleEndian.PutUint64(packet, uint64(i))
				show(packet, i%2 == 1)
			}
		})
	}
	go func() { engines.Wait(); close(stop) }()
	if err := c.Write(out, stop, func() { close(quiet) }, func(x *Totals) { x.Executed = 7 }); err != nil {
		t.Fatal(err)
	}
	<-quiet
	all, totals := readAll(t, out)
	var next [queues]uint64
	var last [queues]int64
	for _, p := range all {
		i := binary.LittleEndian.Uint64(p.Data)
		if i < next[p.Queue] || p.Sent != (i%2 == 1) || p.Length != len(p.Data) ||
			bytes.Count(p.Data[8:], []byte{byte(i)}) != len(p.Data)-8 {
			t.Fatalf("queue %d: packet %d of %d bytes, want one from %d on, as it was shown", p.Queue, i, p.Length, next[p.Queue])
		}
		if p.Time < last[p.Queue] {
			t.Fatalf("queue %d: a packet of %d after one of %d", p.Queue, p.Time, last[p.Queue])
		}
		next[p.Queue], last[p.Queue] = i+1, p.Time
	}
	if n := uint64(len(all)) + totals.Dropped; n != queues*each || totals.Executed != 7 || len(all) == 0 {
		t.Errorf("%d packets and %d dropped, want %d; %+v", len(all), totals.Dropped, queues*each, totals)
	}
}

// full is a client that takes nothing.
type full struct{ entered chan struct{} }

var errGone = errors.New("the client is gone")

func (f full) Write([]byte) (int, error) {
	f.entered <- struct{}{}
	<-f.entered
	return 0, errGone
}

// A client that takes nothing costs packets, and never holds an engine up; and the taps
// are taken away when it is gone.
func TestSlowClientLosesPackets(t *testing.T) {
	c, err := New(1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	show, f, quiet := c.Tap(0), full{make(chan struct{})}, false
	show(make([]byte, 100), true)
	done := make(chan error)
	go func() { done <- c.Write(f, nil, func() { quiet = true }, nil) }()
	<-f.entered
	packet := make([]byte, 1500)
	for range ringLen / len(packet) * 2 {
		show(packet, true) // with a client that does not return
	}
	if c.rings[0].dropped.Load() == 0 {
		t.Error("a full ring has dropped nothing")
	}
	f.entered <- struct{}{}
	if err := <-done; !errors.Is(err, errGone) || !quiet {
		t.Errorf("ended by %v, taps taken away: %v", err, quiet)
	}
}

// A capture has the packets from and to the peers, by either address, and of each its
// beginning alone if that was asked for.
func TestFilter(t *testing.T) {
	a, b, other := wire.MAC{2, 0, 0, 0, 0, 1}, wire.MAC{2, 0, 0, 0, 0, 2}, wire.MAC{2, 0, 0, 0, 0, 3}
	ip := netip.MustParseAddr
	links := []wire.Link{
		{Local: a, Remote: b},
		{Local: b, Remote: a},
		{Local: a, Remote: other},
		{Kind: wire.UDP4, Local: a, Remote: b, LocalIP: ip("10.0.0.1"), RemoteIP: ip("10.0.0.2"), VLAN: 5},
		{Kind: wire.UDP4, Local: other, Remote: a, LocalIP: ip("10.0.0.3"), RemoteIP: ip("10.0.0.1")},
		{Kind: wire.UDP6, Local: a, Remote: other, LocalIP: ip("fd00::1"), RemoteIP: ip("fd00::3")},
	}
	for want, peers := range map[string][]string{
		"012345": nil,
		"013":    {"02:00:00:00:00:02"},
		"3":      {"10.0.0.2"},
		"4":      {"10.0.0.3/7"},
		"35":     {"10.0.0.2", "fd00::3"},
		"":       {"10.9.9.9"},
	} {
		c, err := New(1, Options{Snaplen: 70, Peers: peers})
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range links {
			tpl, err := wire.NewTemplate(l)
			if err != nil {
				t.Fatal(err)
			}
			packet := make([]byte, 300)
			packet[tpl.Len()] = byte(i)
			c.Tap(0)(packet[:tpl.Put(packet, 200)], false)
		}
		stop, out := make(chan struct{}), new(bytes.Buffer)
		close(stop)
		if err := c.Write(out, stop, func() {}, func(*Totals) {}); err != nil {
			t.Fatal(err)
		}
		all, _ := readAll(t, out)
		got := ""
		for _, p := range all {
			frame, _, _ := wire.Decap(append(p.Data, make([]byte, p.Length-len(p.Data))...))
			got += string('0' + frame[0])
			if len(p.Data) != 70 || p.Length <= 200 {
				t.Errorf("%d bytes of a packet of %d, want 70 of more than 200", len(p.Data), p.Length)
			}
		}
		if got != want {
			t.Errorf("%v: packets %q, want %q", peers, got, want)
		}
	}
	for _, o := range []Options{{Peers: []string{"node7"}}, {Snaplen: -1}, {Snaplen: mostData + 1}} {
		if _, err := New(1, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// What is no stream of packets is an error, and so is a stream without an end.
func TestBrokenStream(t *testing.T) {
	if _, _, err := NewReader(bytes.NewReader(nil)).Next(); err != io.EOF {
		t.Errorf("an empty stream: %v", err)
	}
	if _, _, err := NewReader(bytes.NewReader(bytes.Repeat([]byte("HTTP"), 100))).Next(); err == nil {
		t.Error("text is a packet")
	}
	var head [headLen]byte
	head[headCaptured] = 9
	if _, _, err := NewReader(bytes.NewReader(head[:])).Next(); err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a packet: %v", err)
	}
}
