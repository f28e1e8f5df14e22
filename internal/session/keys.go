// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// Keys are the authorization keys of an endpoint: it accepts a session with each of them.
// A nil Key among them accepts sessions without one, as an endpoint without any does.
type Keys []*Key

// Admit judges a hello, which consists of h and payload, and returns the key that it
// proves, if it is accepted.
func (k Keys) Admit(h *wire.Header, m *wire.HelloMsg, payload []byte) (*Key, wire.HelloStatus) {
	if len(k) == 0 {
		return nil, (*Key)(nil).Admit(h, m, payload)
	}
	why := wire.HelloKeyUnwanted // the weakest reason
	for _, key := range k {
		switch s := key.Admit(h, m, payload); {
		case s == wire.HelloAccepted:
			return key, s
		case s != wire.HelloKeyUnwanted:
			why = s
		}
	}
	return nil, why
}

// Of returns the one whose digest without salt a session was written down with; ok is
// false if there is none.
func (k Keys) Of(digest uint64) (key *Key, ok bool) {
	if len(k) == 0 {
		return nil, digest == 0
	}
	for _, key := range k {
		if key.Digest(nil) == digest {
			return key, true
		}
	}
	return nil, false
}
