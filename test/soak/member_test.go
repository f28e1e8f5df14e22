// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// memberEnv has the member's orders, as JSON.
const memberEnv = "XDPFAB_SOAK_MEMBER"

// orders say what a member does: a process that passes messages to the others. In the
// ring it sends to the next member; then it sends to all others. Several goroutines,
// its lanes, send at the same time.
type orders struct {
	IfName string
	Rank   int
	Addrs  []string // of the members' mailboxes, by rank
	Lanes  int
	Ring   int // messages of each lane to the next member
	Each   int // messages of each lane to each other member
}

// account is what a member prints when it has sent and received everything.
type account struct {
	Rank, Sent, Ring, Others int
	Bytes                    uint64 // received
	Resent                   uint64 // frames
}

// member is a member at work.
type member struct {
	orders
	dom   *xdpfab.Domain
	box   *xdpfab.Mailbox
	peers []*xdpfab.Peer // by rank
	sent  atomic.Int64
	bytes atomic.Uint64
}

// memberLimit is the time after which a member counts as hanging.
const memberLimit = 20 * time.Minute

func memberMain() (err error) {
	var m member
	if err := json.Unmarshal([]byte(os.Getenv(memberEnv)), &m.orders); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), memberLimit)
	defer cancel()
	if m.dom, err = xdpfab.Open(ctx, m.IfName, xdpfab.DomainAttr{GiveUp: memberLimit}); err != nil {
		return err
	}
	defer m.dom.CloseAll()
	if m.box, err = m.dom.NewMailbox(xdpfab.MailboxAttr{Number: 1}); err != nil {
		return err
	}
	a, err := m.work(ctx)
	if err != nil {
		return fmt.Errorf("member %d: %w", m.Rank, err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(&a); err != nil {
		return err
	}
	<-ctx.Done() // the others may need it still: it ends with its input
	return ctx.Err()
}

// work sends and receives all messages.
func (m *member) work(ctx context.Context) (account, error) {
	if err := m.dial(ctx); err != nil {
		return account{}, err
	}
	a := account{Rank: m.Rank}
	var errs [3]error
	var all sync.WaitGroup
	n := len(m.Addrs)
	all.Go(func() {
		a.Ring, errs[0] = m.receive(m.Ring*m.Lanes, m.Ring, func(buf []byte) (xdpfab.Received, error) { return m.box.Receive(ctx, buf) })
	})
	all.Go(func() {
		a.Others, errs[1] = m.receive(m.Each*m.Lanes*(n-1), m.Each, func(buf []byte) (xdpfab.Received, error) {
			return m.box.ReceiveTagged(ctx, 0, ^uint64(0), buf)
		})
	})
	all.Go(func() {
		errs[2] = m.lanes(func(lane int) error { return m.send(ctx, lane, (m.Rank+1)%n, m.Ring, false) })
		for step := 1; step < n && errs[2] == nil; step++ {
			errs[2] = m.lanes(func(lane int) error { return m.send(ctx, lane, (m.Rank+step)%n, m.Each, true) })
		}
	})
	all.Wait()
	stats, err := m.dom.Stats()
	a.Sent, a.Bytes, a.Resent = int(m.sent.Load()), m.bytes.Load(), stats["frames_resent"]
	return a, errors.Join(errs[0], errs[1], errs[2], err)
}

// dial reaches the others, which may not have started yet.
func (m *member) dial(ctx context.Context) error {
	m.peers = make([]*xdpfab.Peer, len(m.Addrs))
	for rank, addr := range m.Addrs {
		for rank != m.Rank && m.peers[rank] == nil {
			p, err := m.box.Dial(ctx, addr)
			switch {
			case err == nil:
				m.peers[rank] = p
			case !errors.Is(err, xdpfab.ErrRefused) || ctx.Err() != nil:
				return err
			default:
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	return nil
}

// lanes runs f in all lanes.
func (m *member) lanes(f func(lane int) error) error {
	var all sync.WaitGroup
	errs := make([]error, m.Lanes)
	for lane := range m.Lanes {
		all.Go(func() { errs[lane] = f(lane) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// A message begins with rank and lane of its sender and its number in the lane, and ends
// with a checksum.
const (
	messageHead = 8
	longMessage = 5000 // bytes: several frames
)

// send sends numbered messages in a lane.
func (m *member) send(ctx context.Context, lane, to, count int, tagged bool) error {
	rng := rand.New(rand.NewPCG(uint64(m.Rank), uint64(lane)))
	var buf []byte
	for i := range count {
		n := rng.IntN(200)
		if rng.IntN(64) == 0 {
			n = rng.IntN(longMessage)
		}
		buf = binary.LittleEndian.AppendUint16(buf[:0], uint16(m.Rank))
		buf = binary.LittleEndian.AppendUint16(buf, uint16(lane))
		buf = binary.LittleEndian.AppendUint32(buf, uint32(i))
		for range n / 8 {
			buf = binary.LittleEndian.AppendUint64(buf, rng.Uint64())
		}
		buf = binary.LittleEndian.AppendUint32(buf, crc32.ChecksumIEEE(buf))
		var err error
		if tagged {
			err = m.peers[to].SendTagged(ctx, uint64(m.Rank), buf)
		} else {
			err = m.peers[to].Send(ctx, buf)
		}
		if err != nil {
			return fmt.Errorf("message %d of lane %d to member %d: %w", i, lane, to, err)
		}
		m.sent.Add(1)
	}
	return nil
}

// receive receives total messages and checks each: its sender, its bytes, and that it is
// the next of its lane, of each of which count come.
func (m *member) receive(total, count int, next func([]byte) (xdpfab.Received, error)) (n int, err error) {
	type source struct{ rank, lane int }
	seen, buf := make(map[source]int), make([]byte, longMessage+messageHead+4)
	for ; n < total; n++ {
		got, err := next(buf)
		if err != nil {
			return n, err
		}
		b := got.Bytes
		if len(b) < messageHead+4 || crc32.ChecksumIEEE(b[:len(b)-4]) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
			return n, fmt.Errorf("a message of %d bytes from %v has another checksum", len(b), got.From)
		}
		from := source{int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))}
		i := int(binary.LittleEndian.Uint32(b[4:]))
		switch {
		case from.rank >= len(m.Addrs) || m.Addrs[from.rank] != got.From.String() || got.Tagged && got.Tag != uint64(from.rank):
			return n, fmt.Errorf("a message from %v with tag %d says that it is from member %d", got.From, got.Tag, from.rank)
		case i != seen[from] || i >= count:
			return n, fmt.Errorf("message %d of %+v comes in place of message %d of %d", i, from, seen[from], count)
		}
		seen[from]++
		m.bytes.Add(uint64(len(b)))
	}
	return n, nil
}
