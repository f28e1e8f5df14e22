// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// A served region: shared words first, then a slot for each actor with a word
// and an array of its own.
const (
	regionKey   = 7
	ordinaryKey = 8       // of the second region, beside one that is resident
	regionSize  = 1 << 17 // bytes, of each
	sharedWords = 8
	slotSize    = 8192 // bytes
	arrayAt     = 4096 // within a slot
	arrayLen    = 400  // elements of 8 bytes: more than two frames of MTU 1500
	maxActors   = regionSize/slotSize - 1
)

// setting describes what a world is like.
type setting struct {
	seed           uint64
	udp            bool // over UDP and IPv4 instead of raw Ethernet
	process        bool // the server is an xdpfabd with its memory in a file
	resident       bool // the region is; there is an ordinary one beside it
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

	// The ordinary region, if the first one is resident: the same one otherwise.
	other    []byte
	otherKey uint64

	forgetful bool // a kill of the daemon makes it another life of the node
}

func newWorld(t *testing.T, s setting) *world {
	t.Helper()
	w := &world{t: t, otherKey: regionKey, wire: faultwire.New(t, faultwire.Options{Seed: s.seed})}
	// Cleanups run last first: the tally is taken before the wire is closed.
	t.Cleanup(func() { survived.addWire(w.wire.Stats()) })
	w.addr = w.wire.B.MAC.String()
	if s.udp {
		w.addr = w.wire.B.IP4.String()
	}
	if s.resident {
		requireResident(t)
		w.otherKey = ordinaryKey
	}
	if s.process {
		w.daemon = newDaemon(t, w.wire.B, s)
		w.daemon.start(t)
		w.mem, w.other = w.daemon.memory(t), w.daemon.file
		w.forgetful = !s.resident
	} else {
		w.serve(s)
	}
	if s.resident {
		survived.add("worlds with resident regions", 1)
		if !s.process {
			t.Cleanup(w.countResident)
		}
	}
	w.client = openDomain(t, w.wire.A, s.client)
	return w
}

// serve opens the server in this process.
func (w *world) serve(s setting) {
	w.t.Helper()
	var mems []*mr.Memory
	w.t.Cleanup(func() { // when the server is closed
		for _, m := range mems {
			_ = m.Close()
		}
	})
	w.server = openDomain(w.t, w.wire.B, s.server)
	register := func(key uint64, m *mr.Memory, err error) []byte {
		must(w.t, err)
		mems = append(mems, m)
		r, err := w.server.Register(m, mr.Options{Name: fmt.Sprint("r", key), Key: &key, Access: mr.RemoteRead | mr.RemoteWrite})
		must(w.t, err)
		return r.Bytes()
	}
	m, err := mr.Alloc(regionSize, mr.AllocOptions{})
	w.other = register(w.otherKey, m, err)
	w.mem = w.other
	if s.resident {
		m, err = w.server.NewResidentMemory("r", regionSize)
		w.mem = register(regionKey, m, err)
	}
	ep, err := w.server.NewEndpoint(xdpfab.EndpointAttr{})
	must(w.t, errors.Join(err, ep.Enable()))
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

// answers waits until the server has sent n more frames.
func (w *world) answers(n uint64) {
	w.t.Helper()
	before := w.wire.Stats()[faultwire.BtoA][faultwire.Received]
	w.until(func(s *faultwire.Stats) bool { return s[faultwire.BtoA][faultwire.Received] >= before+n })
}

// mayFail checks that an operation could fail as it did. A node that lives, or whose
// life goes on in another process, is silent at worst; the death of a process may end
// sessions.
func (w *world) mayFail(f fate, err error) {
	switch {
	case f == ok || w.forgetful || errors.Is(err, xdpfab.ErrPeerSilent):
	case f == unknown && w.daemon != nil && errors.Is(err, xdpfab.ErrSessionLost):
	case w.daemon != nil && errors.Is(err, xdpfab.ErrPeerRestarted): // blurred and settled say whether it may be
	default:
		w.t.Errorf("an operation fails for no reason: %v", err)
	}
}
