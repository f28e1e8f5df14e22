// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// The served region: shared words first, then a slot for each actor with a word
// and an array of its own.
const (
	regionKey   = 7
	regionSize  = 1 << 17 // bytes
	sharedWords = 8
	slotSize    = 8192 // bytes
	arrayAt     = 4096 // within a slot
	arrayLen    = 400  // elements of 8 bytes: more than two frames of MTU 1500
	maxActors   = regionSize/slotSize - 1
)

// setting says what a world is like.
type setting struct {
	seed           uint64
	udp            bool // over UDP and IPv4 instead of raw Ethernet
	process        bool // the server is an xdpfabd with its memory in a file
	client, server xdpfab.DomainAttr
	daemonArgs     []string // more arguments of the process
}

// world is a client and a server at the ends of a faulty wire.
type world struct {
	t      *testing.T
	wire   *faultwire.Wire
	client *xdpfab.Domain
	server *xdpfab.Domain // nil if it is a process
	daemon *daemon        // nil if it is not
	addr   string         // of the server's endpoint 0
	mem    []byte         // the region as the server sees it
}

func newWorld(t *testing.T, s setting) *world {
	t.Helper()
	w := &world{t: t, wire: faultwire.New(t, faultwire.Options{Seed: s.seed})}
	// Cleanups run last first: the tally is taken before the wire is closed.
	t.Cleanup(func() { survived.addWire(w.wire.Stats()) })
	w.addr = w.wire.B.MAC.String()
	if s.udp {
		s.client.UDP, s.server.UDP = true, true
		w.addr = w.wire.B.IP4.String()
	}
	if s.process {
		w.daemon = newDaemon(t, w.wire.B, s.udp, s.daemonArgs...)
		w.mem = w.daemon.mem
		w.daemon.start(t)
	} else {
		w.serve(s.server)
	}
	w.client = openDomain(t, w.wire.A, s.client)
	return w
}

// serve opens the server in this process.
func (w *world) serve(attr xdpfab.DomainAttr) {
	w.t.Helper()
	m, err := mr.Alloc(regionSize, mr.AllocOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = m.Close() })
	w.server = openDomain(w.t, w.wire.B, attr)
	key := uint64(regionKey)
	r, err := w.server.Register(m, mr.Options{Name: "r", Key: &key, Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mem = r.Bytes()
	ep, err := w.server.NewEndpoint(xdpfab.EndpointAttr{})
	if err := errors.Join(err, ep.Enable()); err != nil {
		w.t.Fatal(err)
	}
}

func openDomain(t *testing.T, side *testnet.Side, attr xdpfab.DomainAttr) (d *xdpfab.Domain) {
	t.Helper()
	err := side.Do(func() (err error) {
		d, err = xdpfab.Open(context.Background(), side.IfName, attr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.CloseAll(); err != nil {
			t.Errorf("closing the domain on %s: %v", side.Name, err)
		}
	})
	return d
}

// word reads the server's memory at a byte offset.
func (w *world) word(off int) uint64 { return binary.LittleEndian.Uint64(w.mem[off:]) }

// heal removes all faults of the wire.
func (w *world) heal() { w.wire.SetBoth(faultwire.Faults{}) }

// until waits for the wire to have done something.
func (w *world) until(is func(s *faultwire.Stats) bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s := w.wire.Stats()
		if is(&s) {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("what should happen on the wire does not: %v", s)
		}
	}
}
