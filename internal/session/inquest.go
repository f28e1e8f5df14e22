// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// inquest is how a watched session learns that the target's process died although the
// session continues, because the kernel answers its requests and probes. Everything else
// that the process had is lost, and the watch has to report that. Only a process answers
// a hello: one without a cookie begins nothing, and the answer names the life of the
// process.
//
// Its nonce was never used before the answer that named the life which is known. So an
// answer that names another life comes from a later process, however late it arrives.
type inquest struct {
	life uint64 // of the process, as last told
	news uint64 // how often it has changed
	due  bool   // a hello is to be sent
	at   int64  // when the next one is
}

// inquires reports whether the target is asked for the life of its process.
func (s *Initiator) inquires() bool { return s.state == Open && s.watched && s.lasting != 0 }

// inquestNonce returns the nonce that asks for the life.
func (s *Initiator) inquestNonce() uint64 { return ^s.p.Nonce + s.inquest.news }

// emitInquest writes a hello that asks for the life.
func (s *Initiator) emitInquest(b []byte) int {
	p := s.p
	p.Nonce, p.Resume = s.inquestNonce(), wire.Resume{}
	return emitHello(b, s.cfg, &p, wire.Cookie{}, s.asks())
}

// identified takes a hello-ack of an open session.
func (s *Initiator) identified(a *wire.HelloAckMsg) Event {
	switch {
	case a.Nonce != s.inquestNonce():
		return Event{Kind: Refused}
	case a.Life == s.inquest.life:
		return Event{Kind: Nothing}
	}
	s.inquest.life, s.inquest.news = a.Life, s.inquest.news+1
	return Event{Kind: Outlived, Life: a.Life}
}
