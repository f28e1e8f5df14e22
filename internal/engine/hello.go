// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/netip"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// onHello answers a request for a session. No state is created before the initiator has
// shown, with a cookie, that it receives at its address.
func (e *Engine) onHello(h *wire.Header, payload []byte) {
	var m wire.HelloMsg
	if m.Parse(payload) != wire.ReasonOK || int(m.MaxFrame) < session.MinFrame || m.Window == 0 {
		e.count[Invalid]++
		return
	}
	if e.elsewhere(m.Endpoint) {
		return
	}
	e.look() // cookies carry the time
	e.count[Hellos]++
	src := e.source()
	ack := wire.HelloAckMsg{Status: e.admit(&m), Life: e.cfg.Life}
	epoch, key := uint32(0), (*session.Key)(nil)
	if ack.Status == wire.HelloAccepted {
		key, ack.Status, ack.Cookie = e.door(&m, payload, src)
		switch asked := &m.Options.Connection; {
		case ack.Status != wire.HelloAccepted:
		case asked.Set:
			ack.Status, ack.Options.Connection = e.cfg.Request(m.Endpoint, asked, src.Addr())
		default:
			p, owner := e.pairs.own(e, &m)
			if owner != e {
				e.passOn(owner.cfg.Queue)
				return
			}
			epoch = e.accept(h, &m, src, p, key, &ack)
		}
	}
	if refuses(ack.Status) {
		e.helloRefused(&m, src, ack.Status)
	}
	// no other answer is the beginning of a session
	if ack.Status == wire.HelloChallenge || ack.Status == wire.HelloAccepted {
		ack.Options.Resident = e.cfg.Resident
	}
	e.reply(e.pathTo(src, m.Options.Class), func(b []byte) int {
		return key.Reply(b, &m, e.cfg.Lane, epoch, ack)
	})
}

// elsewhere hands the hello at hand over, if its endpoint is served by an engine outside
// of the group.
func (e *Engine) elsewhere(endpoint uint16) bool {
	if e.cfg.Elsewhere == nil || e.at.passedOn {
		return false
	}
	queue, is := e.cfg.Elsewhere(endpoint)
	return is && e.passOn(queue)
}

// door judges whether a hello comes from where it claims, and whether it proves a key of
// the endpoint that it is for, which it returns.
func (e *Engine) door(m *wire.HelloMsg, payload []byte, src *wire.Source) (key *session.Key, status wire.HelloStatus,
	cookie wire.Cookie) {
	var from [64]byte
	ok, cookie := e.pairs.proven(e.now, m, sourceBytes(from[:0], src))
	if !ok {
		return nil, wire.HelloChallenge, cookie
	}
	key, status = e.authorize(m, payload)
	return key, status, wire.Cookie{}
}

// authorize judges whether a hello proves a key of the endpoint that it is for, and
// returns that.
func (e *Engine) authorize(m *wire.HelloMsg, payload []byte) (key *session.Key, status wire.HelloStatus) {
	var keys session.Keys
	if e.cfg.Keys != nil {
		var ok bool
		if keys, ok = e.cfg.Keys(m.Endpoint); !ok { // it was closed since the hello was admitted
			if status = e.admit(m); status == wire.HelloAccepted {
				status = wire.HelloNoEndpoint
			}
			return nil, status
		}
	}
	if key, status = keys.Admit(&e.at.header, m, payload); status != wire.HelloAccepted {
		e.count[HellosUnauthorized]++
	}
	return key, status
}

// admit decides whether a hello is accepted as far as the endpoint is concerned, or, if
// it is a request for a connection, looked at.
func (e *Engine) admit(m *wire.HelloMsg) wire.HelloStatus {
	switch {
	case e.closing:
		return wire.HelloShuttingDown
	case m.Options.Connection.Set && e.cfg.Request != nil && m.Options.Connection.Origin == m.Origin:
		return wire.HelloAccepted
	case m.Options.Connection.Set:
		return wire.HelloNoEndpoint
	case e.cfg.Serve == nil || e.cfg.Accept == nil:
		return wire.HelloNoEndpoint
	}
	return e.cfg.Accept(m.Endpoint, m.Origin)
}

// accept fills in the answer to a proven hello and returns the session's epoch. The
// session is the present one, if the hello is a repetition, or a new one. The pair is
// owned by e.
func (e *Engine) accept(h *wire.Header, m *wire.HelloMsg, src *wire.Source, p *pair, key *session.Key,
	ack *wire.HelloAckMsg) uint32 {
	defer e.pairs.settle(p, e.now)
	t := p.current
	switch {
	case t != nil && m.Serial == p.serial && m.Nonce == t.nonce:
		if t.dying {
			ack.Status = wire.HelloOutdated
			return 0
		}
		t.follow(src)
		t.from = src.Addr()
	case !later(m.Serial, p.serial):
		ack.Status = wire.HelloOutdated
		return 0
	default:
		if t = e.begin(h, m, src, p, key); t == nil {
			ack.Status = wire.HelloFull
			return 0
		}
	}
	ack.Session = uint32(t.slot.id)
	ack.MaxFrame, ack.Window = uint16(t.frame), uint16(e.windowFor(m))
	ack.Features = t.features
	ack.Resume, ack.Lost = e.resume(&m.Resume, src, p)
	return t.epoch
}

// begin makes a session, the latest of its pair, or returns nil when there is no room.
// The session before it executes nothing from here on.
func (e *Engine) begin(h *wire.Header, m *wire.HelloMsg, src *wire.Source, p *pair, key *session.Key) *target {
	p.supersede(&m.Resume)
	owner := e.party(src)
	t := &target{
		e: e, pair: p, party: owner, class: m.Options.Class,
		slot:  slot{path: e.pathTo(src, m.Options.Class), traffic: Traffic{Sessions: 1}},
		nonce: m.Nonce, epoch: uint32(e.cfg.Random()), remote: m.Session, endpoint: m.Endpoint, key: key,
		events: e.eventsFor(m), from: src.Addr(),
		keep: max(int64(e.cfg.Session.IdleRetire), int64(m.Keep)*int64(time.Second)),
	}
	if !e.room(owner) || !e.table.add(t) {
		return nil
	}
	params := session.TargetParams{
		Local: t.slot.id, Remote: t.remote, Lane: h.Lane, Endpoint: t.endpoint, Epoch: t.epoch,
		MaxFrame: min(e.maxFrame(&t.path), int(m.MaxFrame)), Window: e.windowFor(m), Party: owner.key, Key: key,
		Kind: t.path.Kind(), Class: t.class, Memo: t.memo,
		Soon: e.Soon, Wake: func() { e.Soon(t.woken) },
	}
	e.grant(t, m, &params)
	e.shorten(&params)
	t.features = params.Features
	t.frame = params.MaxFrame
	t.s = e.cfg.Serve(e.lived, params)
	if t.s == nil {
		if params.Inflow != nil {
			params.Inflow.Close()
		}
		if params.Attendant != nil {
			params.Attendant.Close()
		}
		if params.Callee != nil {
			params.Callee.Close()
		}
		e.table.remove(t)
		return nil
	}
	e.join(owner)
	t.seal()
	t.path.SetFlow(t.remote)
	p.current, p.serial = t, m.Serial
	e.count[SessionsAccepted]++
	t.note(SessionAccepted, "", nil)
	return t
}

// shorten makes the frames of a session no longer than the XDP program takes, if it may
// get the session; then no operation waits in it, since the program keeps none.
func (e *Engine) shorten(p *session.TargetParams) {
	if e.cfg.Longest == nil {
		return
	}
	if longest := e.cfg.Longest(p); longest > 0 {
		p.MaxFrame = min(p.MaxFrame, longest)
		p.Features &^= wire.FeatureWaits
	}
}

// windowFor returns how many frames may be in flight in the session that a hello asks
// for.
func (e *Engine) windowFor(m *wire.HelloMsg) int { return min(e.cfg.Session.Window, int(m.Window)) }

// grant chooses the features of a session: those that both sides know, and that the
// endpoint has a use for.
func (e *Engine) grant(t *target, m *wire.HelloMsg, p *session.TargetParams) {
	f := e.known(m)
	if t.events != nil {
		p.Places = t.events
	} else {
		f &^= wire.FeatureNotices
	}
	if f&wire.FeatureMessages != 0 && e.cfg.Inflow != nil {
		p.Inflow = e.cfg.Inflow(m.Endpoint, t.from)
	}
	if p.Inflow == nil {
		f &^= wire.FeatureMessages | wire.FeatureTaggedAtomics
	}
	if p.Inflow != nil || e.cfg.Padding == nil || !e.cfg.Padding() { // no program answers messages
		f &^= wire.FeaturePadding
	}
	p.Features = f
	e.callee(t, p)
	t.features = p.Features
	e.attend(t, p, m.Origin)
}

// attend finds who executes frames of a session for which the memory here does not
// suffice. Only an initiator that knows of targets which wait for more than messages
// goes on as long as that takes.
func (e *Engine) attend(t *target, p *session.TargetParams, origin uint64) {
	if e.cfg.Attendant != nil && p.Features&wire.FeatureEchoes != 0 {
		p.Attendant = e.cfg.Attendant(t.endpoint, t.from, origin)
	}
}

// known returns the extensions that both sides know.
func (e *Engine) known(m *wire.HelloMsg) wire.Features {
	return m.Features & e.cfg.Session.Features
}

// supersede ends execution in the sessions of the pair. The session that the initiator
// asks about stays, to answer; any other is removed.
func (p *pair) supersede(r *wire.Resume) {
	if t := p.former; t != nil && !t.named(r) {
		t.remove(endedReplaced)
	}
	t := p.current
	if t == nil {
		return
	}
	if !t.named(r) {
		t.remove(endedReplaced)
		return
	}
	p.former, p.current = t, nil
	t.midway = false
	t.s.Freeze(t.e.lived, t.s.Acked())
	t.e.touch(t, &t.listed)
}

// named reports whether r names the session.
func (t *target) named(r *wire.Resume) bool {
	return uint32(t.slot.id) == r.Session && t.epoch == r.Epoch
}

// resume reports what became of an earlier session of the pair, and has its
// unacknowledged answers sent again. It returns the zero value when there is no such
// session. If the session has been removed, the pair may remember how far it got, but its
// answers are lost.
func (e *Engine) resume(r *wire.Resume, src *wire.Source, p *pair) (known wire.Resume, lost bool) {
	if t := p.former; t != nil && t.named(r) {
		t.follow(src)
		ran := t.s.Freeze(e.lived, r.PSN)
		e.touch(t, &t.listed)
		return t.progress(ran), false
	}
	if r.Session != 0 && p.last.Session == r.Session && p.last.Epoch == r.Epoch {
		return p.last, true
	}
	return wire.Resume{}, false
}

// sourceBytes appends bytes that identify the source of a packet.
func sourceBytes(b []byte, src *wire.Source) []byte {
	b = append(b, byte(src.Kind), byte(src.VLAN), byte(src.VLAN>>8))
	b = append(b, src.Remote[:]...)
	if src.RemoteIP != (netip.Addr{}) {
		ip := src.RemoteIP.As16()
		b = append(b, ip[:]...)
	}
	return b
}
