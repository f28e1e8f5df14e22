// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// keyed returns an initiator with a key, and the payload of its hello.
func keyed(t *testing.T, key *Key, cookie wire.Cookie) (*Initiator, []byte) {
	t.Helper()
	cfg, err := Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := NewInitiator(&cfg, NewPool(1400, 64), Params{Local: wire.NewSessionID(0, 0, 1, 1), Endpoint: 7, MaxFrame: 1500, Nonce: 0x1234,
		Origin: 99, Serial: 1, Options: wire.Options{Class: wire.Class{DSCP: 46}}, Key: key}, 1)
	s.cookie = cookie
	b := make([]byte, 1500)
	_, payload, r := parse(b[:s.Emit(1, b)])
	if r != wire.ReasonOK {
		t.Fatal(r)
	}
	return s, payload
}

// admit reads a hello and judges it.
func (k *Key) admit(payload []byte) wire.HelloStatus {
	var m wire.HelloMsg
	if m.Parse(payload) != wire.ReasonOK {
		return wire.HelloBadVersion
	}
	return k.Admit(&wire.Header{Type: wire.Hello}, &m, payload)
}

// ack answers a hello with an acceptance.
func (s *Initiator) ack(t *testing.T, key *Key, epoch uint32, change func(payload []byte)) Event {
	t.Helper()
	b := make([]byte, 1500)
	n := key.Reply(b, &wire.HelloMsg{Nonce: s.p.Nonce}, 0, epoch, wire.HelloAckMsg{Status: wire.HelloAccepted, Session: 65, MaxFrame: 1500, Window: 8, Life: 3})
	h, payload, r := parse(b[:n])
	if r != wire.ReasonOK {
		t.Fatal(r)
	}
	if change != nil {
		payload = bytes.Clone(payload)
		change(payload)
	}
	return s.Receive(2, &h, payload)
}

// Two endpoints have a session if both have the same key or both have none; else both
// sides know why not, and neither has sent its key.
func TestKeysAgree(t *testing.T) {
	secrets := map[string]*Key{"none": nil, "one": NewKey([]byte("a key that is long enough"), 1), "other": NewKey([]byte("A key that is long enough"), 2), "short": NewKey([]byte{1}, 3)}
	refused := map[wire.HelloStatus]Reason{wire.HelloKeyWanted: RefusedKeyless, wire.HelloKeyUnwanted: RefusedKey, wire.HelloKeyWrong: RefusedOtherKey}
	for from, ours := range secrets {
		for to, theirs := range secrets {
			s, payload := keyed(t, ours, wire.Cookie{1})
			if ours != nil && len(ours.secret) > 1 && bytes.Contains(payload, ours.secret) {
				t.Errorf("%s: the hello contains the key", from)
			}
			want := wire.HelloAccepted
			switch {
			case from == to:
			case ours == nil:
				want = wire.HelloKeyWanted
			case theirs == nil:
				want = wire.HelloKeyUnwanted
			default:
				want = wire.HelloKeyWrong
			}
			if got := theirs.admit(payload); got != want {
				t.Errorf("%s to %s: %v, want %v", from, to, got, want)
			}
			b := make([]byte, 1500)
			if why, ok := refused[want]; ok {
				_, p, _ := parse(b[:theirs.Reply(b, &wire.HelloMsg{Nonce: s.p.Nonce}, 0, 0, wire.HelloAckMsg{Status: want})])
				s.Receive(2, &wire.Header{Type: wire.HelloAck}, p)
				if state, got := s.State(); state != Closed || got != why {
					t.Errorf("%s to %s: the initiator is %v, %v; want %v", from, to, state, got, why)
				}
				s, _ = keyed(t, ours, wire.Cookie{1}) // and a target that does not care
			}
			ev := s.ack(t, theirs, 77, nil)
			if opened := ev.Kind == Opened; opened != (from == to) {
				t.Errorf("%s to %s: %+v after an acceptance", from, to, ev)
			}
			if _, why := s.State(); from != to && why != Unproven {
				t.Errorf("%s to %s: the initiator ends for %v, want %v", from, to, why, Unproven)
			}
		}
	}
}

// The proof is about every byte of the hello, the cookie included, and of the hello-ack,
// its epoch and its sack; and that of one direction is none of the other.
func TestProofCoversEverything(t *testing.T) {
	key := NewKey([]byte("key"), 1)
	_, hello := keyed(t, key, wire.Cookie{1})
	for i := range hello {
		b := bytes.Clone(hello)
		b[i] ^= 1
		if key.admit(b) == wire.HelloAccepted {
			t.Errorf("a hello with another byte %d of %d is accepted", i, len(hello))
		}
	}
	if _, next := keyed(t, key, wire.Cookie{2}); bytes.Equal(hello[len(hello)-32:], next[len(next)-32:]) {
		t.Error("another cookie, and the same proof")
	}
	s, _ := keyed(t, key, wire.Cookie{1})
	const length = wire.HelloLen + 34
	for i := 8; i < length; i++ { // behind the nonce, without which it is no answer
		s, _ := keyed(t, key, wire.Cookie{1})
		if ev := s.ack(t, key, 77, func(b []byte) { b[i] ^= 1 }); ev.Kind == Opened {
			t.Errorf("a hello-ack with another byte %d opens the session", i)
		}
	}
	b := make([]byte, 1500)
	n := key.Reply(b, &wire.HelloMsg{Nonce: s.p.Nonce}, 0, 77, wire.HelloAckMsg{Status: wire.HelloAccepted, MaxFrame: 1500, Window: 8, Life: 3})
	h, payload, _ := parse(b[:n])
	for what, change := range map[string]func(h *wire.Header){
		"epoch": func(h *wire.Header) { h.Epoch++ }, "sack": func(h *wire.Header) { h.Sack ^= 1 },
	} {
		s, _ := keyed(t, key, wire.Cookie{1})
		other := h
		change(&other)
		if ev := s.Receive(2, &other, payload); ev.Kind == Opened {
			t.Errorf("a hello-ack of another %s opens the session", what)
		}
	}
	if key.admit(payload) == wire.HelloAccepted {
		t.Error("a hello-ack that comes back is accepted as a hello")
	}
	if ev := func() Event { s, _ := keyed(t, key, wire.Cookie{1}); return s.ack(t, key, 77, nil) }(); ev.Kind != Opened {
		t.Errorf("%+v, want the session open", ev)
	}
}
