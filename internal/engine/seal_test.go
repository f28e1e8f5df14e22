// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// gcm seals with AES-GCM: it encrypts what follows the header, and authenticates all.
// Behind the frame stand the tag and a number that is never used again.
type gcm struct {
	aead   cipher.AEAD
	sealed uint64
	from   byte // the side that seals
}

// gcmRoom is the length of tag and number, bytes.
const gcmRoom = 16 + 8

func newGCM(secret string, s *Sealing) *gcm {
	b := append([]byte(secret), make([]byte, 20)...)
	for i, v := range []uint32{s.Initiator, s.Target, s.Epoch, uint32(s.Nonce), uint32(s.Nonce >> 32)} {
		binary.LittleEndian.PutUint32(b[len(secret)+4*i:], v)
	}
	key := sha256.Sum256(b)
	block, _ := aes.NewCipher(key[:16])
	aead, _ := cipher.NewGCM(block)
	g := &gcm{aead: aead}
	if s.Initiates {
		g.from = 1
	}
	return g
}

func nonceOf(side byte, number uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{side, 0, 0, 0}, number)
}

func (g *gcm) Seal(b []byte, n int) int {
	g.sealed++
	clear(b[wire.HeaderLen-4 : wire.HeaderLen]) // no checksum
	at := b[wire.HeaderLen:]
	g.aead.Seal(at[:0], nonceOf(g.from, g.sealed), at[:n-wire.HeaderLen], b[:wire.HeaderLen])
	binary.LittleEndian.PutUint64(b[n+16:], g.sealed)
	return n + gcmRoom
}

func (g *gcm) Open(sealed []byte) ([]byte, wire.Reason) {
	end := len(sealed) - 8
	number := binary.LittleEndian.Uint64(sealed[end:])
	at := sealed[wire.HeaderLen:end]
	if _, err := g.aead.Open(at[:0], nonceOf(1-g.from, number), at, sealed[:wire.HeaderLen]); err != nil {
		return nil, wire.ReasonBadCRC
	}
	return sealed[:end-16], wire.ReasonOK
}

// WithGCM has an engine seal the frames of sessions by AES-GCM, with keys from a secret.
func WithGCM(secret string) func(c *Config) {
	return func(c *Config) {
		c.SealRoom = gcmRoom
		c.Sealer = func(s Sealing) wire.Sealer { return newGCM(secret, &s) }
	}
}

func (c *cable) sealWith(secrets ...string) {
	for i, n := range c.nodes {
		for _, e := range n.eng {
			WithGCM(secrets[i])(&e.cfg)
		}
	}
}

// damage has packets get lost, repeated, late and damaged.
func (c *cable) damage(rng *rand.Rand) {
	var late [2][][]byte
	c.pass = func(to int, packet []byte) bool {
		for _, p := range late[to] {
			c.deliver(to, p)
		}
		late[to] = nil
		switch rng.IntN(16) {
		case 0:
			return false
		case 1:
			c.deliver(to, packet)
		case 2:
			late[to] = append(late[to], slices.Clone(packet))
			return false
		case 3:
			packet[14+rng.IntN(len(packet)-14)] ^= 1 << rng.IntN(8)
		}
		return true
	}
}

func (n *cableNode) refused() uint64 { return n.counted(refusedBase + Counter(wire.ReasonBadCRC)) }

// A session has the sealer that its engines choose, with keys that no other session has:
// operations run once, in order, whatever the network does and whatever queue it chooses;
// only what makes the session has a checksum, and the longest frames fill their packets.
func TestSealer(t *testing.T) {
	for _, damages := range []bool{false, true} {
		for steer := range 2 {
			t.Run(fmt.Sprintf("damage %t, queue %d", damages, steer), func(t *testing.T) {
				c := newCable(t, session.Config{GiveUp: time.Hour})
				c.sealWith("a secret", "a secret")
				p := c.peer(ethernet())
				c.write(p, 2, 0)
				c.steer = steer // the session lives on queue 0
				if damages {
					c.damage(rand.New(rand.NewPCG(1, uint64(steer))))
				}
				const n = 500
				var all [n]*outcomes
				var results [n][]byte
				for i := range all {
					all[i], results[i] = c.add(p, 1)
					c.step()
				}
				for i, r := range all {
					if res := c.done(r); res.Outcome != Success || binary.LittleEndian.Uint64(results[i]) != uint64(i) {
						t.Fatalf("addition %d: %+v, fetched %x", i, res, results[i])
					}
				}
				if res := c.done(c.read(p, 1000)); res.Outcome != Success || c.word(1) != n {
					t.Fatalf("%+v; the sum is %d, want %d", res, c.word(1), n)
				}
				c.sealedAll(t, damages)
			})
		}
	}
}

// sealedAll looks at the packets that there were.
func (c *cable) sealedAll(t *testing.T, damages bool) {
	t.Helper()
	longest, bytes := 0, uint64(0)
	for to, packets := range c.seen {
		for _, packet := range packets {
			frame, _ := wire.Strip(packet, worldMACs[to], false)
			longest = max(longest, len(packet))
			of, _, _ := wire.Peek(frame)
			_, _, reason := wire.Parse(frame)
			if is := reason == wire.ReasonOK; is != keyless(of) || !is && reason != wire.ReasonBadCRC {
				t.Fatalf("a frame of type %v is %v as one with a checksum", of, reason)
			}
			if to == 1 {
				bytes += uint64(len(packet))
			}
		}
	}
	if longest <= 14+1500-16 || longest > 14+1500 {
		t.Errorf("the longest packet has %d bytes, want %d, less a word and the list of statuses", longest, 14+1500)
	}
	if counted := one(t, c.nodes[0].eng[0]).BytesSent; counted != bytes {
		t.Errorf("%d bytes sent, counted as %d", bytes, counted)
	}
	refused := c.nodes[0].refused() + c.nodes[1].refused()
	if opened := c.nodes[0].counted(SessionsOpened); (refused > 0) != damages || opened != 1 {
		t.Errorf("%d frames refused in %d sessions; want some: %t, and 1", refused, opened, damages)
	}
}

// What the peer sealed with another key is dropped and counted, and nothing of it runs.
func TestOtherKey(t *testing.T) {
	c := newCable(t, session.Config{GiveUp: time.Second})
	c.sealWith("a secret", "another")
	res := c.done(c.post(c.peer(ethernet()), 1, 7))
	if res.Outcome != Unknown || res.Reason != session.GaveUp || c.word(1) != 0 {
		t.Errorf("%+v, the word is %d", res, c.word(1))
	}
	target := c.nodes[1]
	if target.refused() == 0 || target.counted(RequestsExecuted) != 0 {
		t.Errorf("%d frames refused, %d executed", target.refused(), target.counted(RequestsExecuted))
	}
}

// A hello in the middle of a session, which asks for the life of the target's process,
// is answered: both have the checksum.
func TestHelloOfSealedSession(t *testing.T) {
	c := newCable(t, session.Config{})
	c.sealWith("a secret", "a secret")
	target := c.nodes[1].eng[0]
	target.cfg.Resident = 77
	p := c.peer(ethernet())
	c.write(p, 1, 1)
	r := &outcomes{}
	c.watch(p, r)
	c.idle(5 * time.Second)
	if len(r.all) > 0 {
		t.Fatalf("the watch has ended: %+v", r.all)
	}
	target.cfg.Life++
	c.idle(5 * time.Second)
	if len(r.all) != 1 || r.all[0].Reason != session.PeerRestarted {
		t.Errorf("%+v; want to hear that the peer restarted", r.all)
	}
	if n := c.nodes[0].refused() + c.nodes[1].refused(); n > 0 {
		t.Errorf("%d frames refused", n)
	}
}

// A session with a sealer believes nothing else: neither a request nor the end of the
// session that comes with a checksum, though all they say is right, nor what comes in the
// name of another session.
func TestForgery(t *testing.T) {
	put := func(to int, h wire.Header, payload func(b []byte) int) []byte {
		b := make([]byte, 2048)
		way, _ := wire.NewTemplate(wire.Link{Local: worldMACs[1-to], Remote: worldMACs[to]})
		frame := b[way.Len():]
		h.Put(frame)
		return b[:way.Put(b, wire.Seal(frame, wire.HeaderLen+payload(frame[wire.HeaderLen:])))]
	}
	reset := func(at wire.Resume, why wire.ResetReason) func(b []byte) int {
		return func(b []byte) int {
			(&wire.ResetMsg{Session: at.Session, PSN: at.PSN + 1, Reason: why}).Put(b)
			return wire.ResetLen
		}
	}
	forgeries := map[string]struct {
		to      int
		packet  func(c *conn) []byte
		believe func(c *cable, of *conn) bool
		counter Counter
	}{
		"a request": {1, func(c *conn) []byte {
			at := c.ini.Identity()
			return put(1, wire.Header{Type: wire.Request, Session: at.Session, Epoch: at.Epoch, PSN: at.PSN + 1, Ack: at.PSN, Credit: 64, Ops: 1}, func(b []byte) int {
				var w wire.RecordWriter
				w.Reset(b, 1000)
				w.Append(&wire.Record{Verb: wire.VerbAtomic, Op: uint8(atomic.Write), Datatype: uint8(atomic.Uint64), Key: 1, Offset: 8, Count: 1, Total: 1, Operand: []byte{9, 0, 0, 0, 0, 0, 0, 0}})
				return w.Len()
			})
		}, func(c *cable, _ *conn) bool { return c.word(1) == 9 }, refusedBase + Counter(wire.ReasonBadCRC)},
		"the end": {0, func(c *conn) []byte {
			at := c.ini.Identity()
			return put(0, wire.Header{Type: wire.Reset, Session: uint32(c.slot.id), Epoch: at.Epoch, Ack: at.PSN}, reset(at, wire.ResetClosed))
		}, func(_ *cable, of *conn) bool { return of.spent() }, refusedBase + Counter(wire.ReasonBadCRC)},
		"a reset of nobody": {0, func(c *conn) []byte {
			at := c.ini.Identity()
			return put(0, wire.Header{Type: wire.Reset, Session: wire.HelloSession(0), Epoch: at.Epoch}, reset(at, wire.ResetUnknownSession))
		}, func(_ *cable, of *conn) bool { return of.spent() }, UnknownSession},
	}
	for name, f := range forgeries {
		for _, sealed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, sealed %t", name, sealed), func(t *testing.T) {
				c := newCable(t, session.Config{})
				if sealed {
					c.sealWith("a secret", "a secret")
				}
				p := c.peer(ethernet())
				c.write(p, 1, 1)
				of := p.r.conn
				before := c.nodes[f.to].counted(f.counter)
				c.deliver(f.to, f.packet(of))
				for range 3 {
					c.step()
				}
				if is := f.believe(c, of); is == sealed {
					t.Fatalf("believed: %t", is)
				}
				if n := c.nodes[f.to].counted(f.counter) - before; (n == 1) != sealed {
					t.Errorf("counted %d times", n)
				}
				if sealed {
					c.write(p, 1, 2)
				}
			})
		}
	}
}
