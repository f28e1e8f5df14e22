// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// CookieLife is the period in nanoseconds after which a cookie is renewed; one is
// accepted for up to two periods.
const CookieLife = int64(10e9)

// sourceLen is the most bytes that identify the source of a hello. All that a cookie
// depends on fits two blocks of the hash.
const sourceLen = 40

// Listener is the target's door. It answers a first hello with a cookie and
// keeps no state; only an initiator that brings the cookie back, and so proves
// that it receives at its address, may take memory.
type Listener struct {
	secret [32]byte
}

// NewListener returns a door whose cookies depend on secret, which must be
// fresh and random.
func NewListener(secret [32]byte) *Listener { return &Listener{secret: secret} }

// Proven reports whether the hello brings a cookie of this listener for the
// address from (any unique bytes of at most sourceLen).
func (l *Listener) Proven(now int64, m *wire.HelloMsg, from []byte) bool {
	epoch := now / CookieLife
	for _, e := range [2]int64{epoch, epoch - 1} {
		c := l.cookie(e, m, from)
		if subtle.ConstantTimeCompare(c[:], m.Cookie[:]) == 1 {
			return true
		}
	}
	return false
}

// Cookie returns the proof that the initiator at from has to bring back.
func (l *Listener) Cookie(now int64, m *wire.HelloMsg, from []byte) wire.Cookie {
	return l.cookie(now/CookieLife, m, from)
}

func (l *Listener) cookie(period int64, m *wire.HelloMsg, from []byte) (c wire.Cookie) {
	var in [32 + 8 + 8 + 4 + 2 + 8 + 4 + sourceLen]byte
	copy(in[:], l.secret[:])
	binary.LittleEndian.PutUint64(in[32:], uint64(period))
	binary.LittleEndian.PutUint64(in[40:], m.Nonce)
	binary.LittleEndian.PutUint32(in[48:], m.Session)
	binary.LittleEndian.PutUint16(in[52:], m.Endpoint)
	binary.LittleEndian.PutUint64(in[54:], m.Origin) // so that each session takes a cookie of its own
	binary.LittleEndian.PutUint32(in[62:], m.Serial)
	copy(in[66:], from)
	sum := sha256.Sum256(in[:])
	copy(c[:], sum[:])
	return c
}

// Reply writes a hello-ack into b and returns the length of the frame, which has no seal
// yet. epoch is that of the accepted session, or 0 if none was accepted. If the endpoint
// has a key, a hello-ack that accepts, or answers a request for a connection, proves it.
func (k *Key) Reply(b []byte, to *wire.HelloMsg, lane uint8, epoch uint32, m wire.HelloAckMsg) int {
	m.Nonce = to.Nonce
	h := wire.Header{Type: wire.HelloAck, Session: to.Session, Epoch: epoch, Sack: m.Resume.Early, Lane: lane}
	h.Put(b)
	switch m.Status {
	case wire.HelloAccepted, wire.HelloConnect, wire.HelloRejected:
	default:
		k = nil
	}
	m.Options.Proven = k != nil
	n := wire.HeaderLen + m.Put(b[wire.HeaderLen:])
	k.sign(ofHelloAck, &h, b[wire.HeaderLen:n])
	return n
}

// Strange writes the reset that answers a frame of a session that this target does not
// know. The sender's id of the session is not known either.
func Strange(b []byte, h *wire.Header, lane uint8, reason wire.ResetReason) int {
	r := wire.Header{
		Type: wire.Reset, Session: wire.HelloSession(h.Lane),
		Epoch: h.Epoch, Lane: lane,
	}
	r.Put(b)
	m := wire.ResetMsg{Session: h.Session, PSN: h.PSN, Reason: reason}
	m.Put(b[wire.HeaderLen:])
	return wire.HeaderLen + wire.ResetLen
}
