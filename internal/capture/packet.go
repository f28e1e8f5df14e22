// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Packet is a packet that was captured.
type Packet struct {
	Time   int64 // Unix, ns
	Length int   // of the whole packet, bytes
	Queue  int   // whose engine received or sent it
	Sent   bool
	Data   []byte // its first bytes
}

// The head of a packet in a stream; all numbers are little-endian.
const (
	headLength   = 8  // behind the time
	headCaptured = 12 // the length of what follows the head
	headQueue    = 16
	headKind     = 18
	headLen      = 20
)

// Kinds of what follows a head.
const (
	received = iota
	sent
	end // Totals, as JSON
)

func (p *Packet) encode(head *[headLen]byte) {
	le := binary.LittleEndian
	le.PutUint64(head[:], uint64(p.Time))
	le.PutUint32(head[headLength:], uint32(p.Length))
	le.PutUint32(head[headCaptured:], uint32(len(p.Data)))
	le.PutUint16(head[headQueue:], uint16(p.Queue))
	head[headKind] = received
	if p.Sent {
		head[headKind] = sent
	}
}

// Totals are what a capture has come to.
type Totals struct {
	Dropped  uint64 `json:"dropped"`  // packets that found no room
	Executed uint64 `json:"executed"` // requests that the XDP program answered meanwhile, which are not captured
	Lent     int    `json:"lent"`     // queues that programs drive, whose packets are not captured
}

// writeTotals writes the end of a stream.
func writeTotals(w io.Writer, t *Totals) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	var head [headLen]byte
	binary.LittleEndian.PutUint32(head[headCaptured:], uint32(len(text)))
	head[headKind] = end
	_, err = w.Write(append(head[:], text...))
	return err
}

// Reader reads a stream of packets.
type Reader struct {
	from io.Reader
	head [headLen]byte
	data []byte
}

// NewReader returns a Reader of a stream.
func NewReader(from io.Reader) *Reader { return &Reader{from: from} }

// mostData is more than any packet has, bytes.
const mostData = 1 << 20

// Next reads the next packet, whose data is valid until the next call, or the totals at
// the end. The error is that of the stream; io.EOF if it ends without totals.
func (r *Reader) Next() (p Packet, t *Totals, err error) {
	if _, err := io.ReadFull(r.from, r.head[:]); err != nil {
		return p, nil, err
	}
	le := binary.LittleEndian
	n := int(le.Uint32(r.head[headCaptured:]))
	if n > mostData || r.head[headKind] > end {
		return p, nil, fmt.Errorf("no head of a packet: %x; is the daemon of another version?", r.head)
	}
	if cap(r.data) < n {
		r.data = make([]byte, n)
	}
	r.data = r.data[:n]
	if _, err := io.ReadFull(r.from, r.data); err != nil {
		return p, nil, err
	}
	if r.head[headKind] == end {
		t = &Totals{}
		return p, t, json.Unmarshal(r.data, t)
	}
	return Packet{Time: int64(le.Uint64(r.head[:])), Length: int(le.Uint32(r.head[headLength:])),
		Queue: int(le.Uint16(r.head[headQueue:])), Sent: r.head[headKind] == sent, Data: r.data}, nil, nil
}
