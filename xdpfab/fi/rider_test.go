// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Between callers that answer each message, the acks ride: a message takes one packet.
// Timers may add some on a machine that stops this thread.
func TestAnsweredMessageTakesOnePacket(t *testing.T) {
	sides := newSides(t, 4096)
	m, r := fi.Message{Buf: make([]byte, 8)}, fi.Receive{Buf: make([]byte, 8)}
	const trips = 4000
	packets := func() (n uint64) {
		for _, s := range sides {
			stats, err := s.dom.Stats()
			if err != nil {
				t.Fatal(err)
			}
			n += stats["packets_sent"]
		}
		return n
	}
	for range 50 { // until it is their habit
		trip(t, sides, &m, &r)
	}
	before := packets()
	for range trips {
		trip(t, sides, &m, &r)
	}
	if n := packets() - before; n < 2*trips || n > 3*trips {
		t.Errorf("%d packets for %d messages", n, 2*trips)
	}
}

// Messages go both ways through a bad network, and each side answers what it gets: each
// message arrives once, in its order, and is known to have arrived.
func TestRidersUnderFaults(t *testing.T) {
	const messages, window = 2000, 16
	sides := newSides(t, 4096)
	faults := fi.Faults{Loss: 0.02, Duplicate: 0.05, Reorder: 0.1, Corrupt: 0.01}
	if err := errors.Join(sides[0].dom.SetFaults(faults), sides[1].dom.SetFaults(faults)); err != nil {
		t.Fatal(err)
	}
	var posted, sent, received [2]int
	receive, send := [2][]byte{}, [2][]byte{}
	for i, s := range sides {
		receive[i], send[i] = make([]byte, 8*window), make([]byte, 8*window)
		for k := range window {
			if err := s.ep.ReceiveTagged(&fi.Receive{Buf: receive[i][8*k : 8*k+8], Context: k}, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for sent[0]+sent[1]+received[0]+received[1] < 4*messages {
		for i, s := range sides {
			for posted[i] < messages && posted[i]-sent[i] < window && posted[i] <= received[i] {
				b := send[i][8*(posted[i]%window):][:8]
				binary.LittleEndian.PutUint64(b, uint64(posted[i]))
				if err := s.ep.SendTagged(&fi.Message{Buf: b, Dest: s.peer}, 0); err != nil {
					t.Fatal(err)
				}
				posted[i]++
			}
			n, err := s.cq.Read(s.batch)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range s.batch[:n] {
				if c.Flags&fi.CompletionRecv == 0 {
					sent[i]++
					continue
				}
				k := c.Context.(int)
				b := receive[i][8*k:][:8]
				if got := binary.LittleEndian.Uint64(b); got != uint64(received[i]) {
					t.Fatalf("side %d: message %d came as number %d", i, got, received[i])
				}
				received[i]++
				if err := s.ep.ReceiveTagged(&fi.Receive{Buf: b, Context: k}, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
