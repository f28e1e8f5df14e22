// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Key is an authorization key: two endpoints have a session only if both have the same,
// or both have none. It is never sent. Each side proves in the handshake that it knows
// the key, by an HMAC of what it says there. The proof of a hello covers the target's
// cookie, so it is worth nothing for another target, from another address, or later. A
// nil Key is none.
type Key struct {
	secret []byte
	id     uint32
}

// NewKey returns a key, whose number is id according to the target.
func NewKey(secret []byte, id uint32) *Key { return &Key{append([]byte(nil), secret...), id} }

// ID returns the number that the target has for the key: not 0, which is none.
func (k *Key) ID() uint32 {
	if k == nil {
		return 0
	}
	return k.id
}

// Digest returns a number that stands for the key among those with the same salt, from
// which the key cannot be found: not 0, which is none.
func (k *Key) Digest(salt []byte) uint64 {
	if k == nil {
		return 0
	}
	mac := hmac.New(sha256.New, k.secret)
	mac.Write([]byte(ofDigest))
	mac.Write(salt)
	return max(1, binary.LittleEndian.Uint64(mac.Sum(nil)))
}

// What a proof is of, so that one side's proof is none of the other side's.
const (
	ofHello    = "xdpfab 1 hello"
	ofHelloAck = "xdpfab 1 hello-ack"
	ofDigest   = "xdpfab 1 digest"
)

// proof returns the HMAC of the bytes of a hello or hello-ack before the proof, and of
// two fields of the frame's header: the epoch and the sack.
func (k *Key) proof(of string, h *wire.Header, said []byte) (p wire.Proof) {
	mac := hmac.New(sha256.New, k.secret)
	mac.Write([]byte(of))
	var b [12]byte
	binary.LittleEndian.PutUint32(b[:], h.Epoch)
	binary.LittleEndian.PutUint64(b[4:], h.Sack)
	mac.Write(b[:])
	mac.Write(said)
	mac.Sum(p[:0])
	return p
}

// sign fills in the proof, for which the message of a payload has room.
func (k *Key) sign(of string, h *wire.Header, payload []byte) {
	if k == nil {
		return
	}
	p := k.proof(of, h, wire.Said(payload))
	copy(payload[len(payload)-len(p):], p[:])
}

// proven reports, in constant time, whether a message with options proves the key.
func (k *Key) proven(of string, h *wire.Header, o *wire.Options, payload []byte) bool {
	if k == nil || !o.Proven {
		return k == nil && !o.Proven
	}
	p := k.proof(of, h, wire.Said(payload))
	return hmac.Equal(p[:], o.Proof[:])
}

// Admit judges a hello, which consists of h and payload, for an endpoint that has the
// key.
func (k *Key) Admit(h *wire.Header, m *wire.HelloMsg, payload []byte) wire.HelloStatus {
	switch {
	case k.proven(ofHello, h, &m.Options, payload):
		return wire.HelloAccepted
	case k == nil:
		return wire.HelloKeyUnwanted
	case !m.Options.Proven:
		return wire.HelloKeyWanted
	}
	return wire.HelloKeyWrong
}
