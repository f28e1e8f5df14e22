// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Options say which packets are captured.
type Options struct {
	Snaplen int      `json:"snaplen"`         // at most so many bytes of each packet; 0 for all
	Peers   []string `json:"peers,omitempty"` // MAC or IP addresses; only packets from or to one of them; none: all
	// The engines take the requests that the XDP program would answer, so that these are
	// captured, too.
	Resident bool `json:"resident,omitempty"`
}

// Start is what a daemon answers before the first packet.
type Start struct {
	Interface string `json:"interface"`
	Queues    int    `json:"queues"`
	Resident  bool   `json:"resident,omitempty"` // as in Options, if the daemon knows that one
}

// Sizes of the rings, bytes. All of them together have at most ringsLen.
const (
	ringLen  = 4 << 20
	ringsLen = 16 << 20
)

// lookEvery is the time between two looks at the rings: an engine that sends and receives
// 2 GB/s fills its ring in that time.
const lookEvery = 2 * time.Millisecond

// Capture is a capture under way.
type Capture struct {
	snaplen int
	peers   []wire.Addr
	rings   []ring
	began   time.Time
	all     []byte   // what one look has found; the writer's
	places  [][2]int // where its packets lie
}

// New returns a capture of the packets of so many engines.
func New(queues int, o Options) (*Capture, error) {
	c := &Capture{snaplen: cmp.Or(o.Snaplen, mostData), rings: make([]ring, queues), began: time.Now()}
	if o.Snaplen < 0 || o.Snaplen > mostData {
		return nil, fmt.Errorf("snaplen of %d bytes: want at most %d, or 0 for whole packets", o.Snaplen, mostData)
	}
	for _, text := range o.Peers {
		a, err := wire.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		c.peers = append(c.peers, a)
	}
	size := ringLen
	for size*queues > ringsLen {
		size /= 2
	}
	for i := range c.rings {
		c.rings[i].memory = make([]byte, size)
	}
	return c, nil
}

// Tap returns what an engine is to show its packets to: see Engine.Tap of package engine.
func (c *Capture) Tap(queue int) func(packet []byte, sent bool) {
	return func(packet []byte, sent bool) {
		if c.wants(packet) {
			c.rings[queue].add(&Packet{Time: c.now(), Length: len(packet), Queue: queue, Sent: sent,
				Data: packet[:min(len(packet), c.snaplen)]})
		}
	}
}

// now is the time of a packet, nanoseconds since 1970: by a clock that nobody sets back.
func (c *Capture) now() int64 { return c.began.UnixNano() + int64(time.Since(c.began)) }

// wants reports whether a packet is from or to one of the peers.
func (c *Capture) wants(packet []byte) bool {
	if len(c.peers) == 0 {
		return true
	}
	_, x, _ := wire.Decap(packet) // which finds addresses in a malformed packet, too
	for i := range c.peers {
		p := &c.peers[i]
		if p.IsIP() && (x.RemoteIP == p.IP || x.LocalIP == p.IP) {
			return true
		}
		if !p.IsIP() && (x.Remote == p.MAC || x.Local == p.MAC) {
			return true
		}
	}
	return false
}

// Write writes what the engines show until stop is closed. Then it calls quiet, which
// takes the taps away, and writes what was captured until then, and the totals, which
// last completes. If the stream breaks, Write calls quiet and returns the error.
func (c *Capture) Write(w io.Writer, stop <-chan struct{}, quiet func(), last func(*Totals)) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := c.flush(w); err != nil {
				quiet()
				return err
			}
			continue
		case <-stop:
		}
		quiet()
		if err := c.flush(w); err != nil {
			return err
		}
		var t Totals
		for i := range c.rings {
			t.Dropped += c.rings[i].dropped.Load()
		}
		last(&t)
		return writeTotals(w, &t)
	}
}

// flush writes the packets that the rings have now, in the order of time.
func (c *Capture) flush(w io.Writer) error {
	c.all, c.places = c.all[:0], c.places[:0]
	for i := range c.rings {
		r := &c.rings[i]
		for end := r.put.Load(); r.taken.Load() < end; {
			from := len(c.all)
			c.all = r.take(c.all)
			c.places = append(c.places, [2]int{from, len(c.all)})
		}
	}
	timeOf := func(p [2]int) uint64 { return binary.LittleEndian.Uint64(c.all[p[0]:]) }
	slices.SortStableFunc(c.places, func(a, b [2]int) int { return cmp.Compare(timeOf(a), timeOf(b)) })
	to := bufio.NewWriterSize(w, 1<<16)
	for _, p := range c.places {
		if _, err := to.Write(c.all[p[0]:p[1]]); err != nil {
			return err
		}
	}
	return to.Flush()
}
