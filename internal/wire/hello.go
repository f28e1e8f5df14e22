// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Lengths of the payloads that open and close sessions, bytes.
const (
	HelloLen  = 64  // hello and hello-ack, without options
	HelloRoom = 128 // at most so many bytes may follow: options, or what a later version knows
	ResetLen  = 12
	CookieLen = 16
)

// Cookie proves that the sender of a hello receives at the address that it claims. The
// zero cookie means none yet.
type Cookie [CookieLen]byte

// Resume names an earlier session between the same two, and how far one side got. The
// zero value names none: session ids are never zero.
type Resume struct {
	Session uint32 // the target's id of it
	Epoch   uint32
	PSN     uint32
	// Early reports which later requests of an unordered session have run: bit i is
	// PSN+2+i. It is not in the payload, but in the header of a hello-ack, as Sack.
	Early uint64
}

func getResume(b []byte) Resume {
	le := binary.LittleEndian
	return Resume{Session: le.Uint32(b), Epoch: le.Uint32(b[4:]), PSN: le.Uint32(b[8:])}
}

// HelloMsg is the payload of a hello.
type HelloMsg struct {
	Nonce    uint64   // chosen by the initiator; a repeated hello repeats it
	Session  uint32   // initiator's session id, which the target puts into its frames
	Endpoint uint16   // target endpoint number
	MaxFrame uint16   // longest frame that the initiator can receive, bytes
	Window   uint16   // frames in flight that it would like
	Keep     uint16   // seconds of silence for which the target is asked to remember the session
	Features Features // that the initiator knows
	Cookie   Cookie
	Resume   Resume // the session before, if its outcome is in question; all answers up to PSN have arrived
	// Origin names the initiating endpoint in this life of its process, whatever its
	// addresses are. It is random and never used again. Serial numbers the sessions of
	// the origin in the order in which they begin, so that the later of two hellos of
	// one origin for one endpoint can be told.
	Origin uint64
	Serial uint32

	Options Options
}

// helloFeatures is where the features are in hello and hello-ack.
const helloFeatures = 20

// Put writes the payload into b, which has room for HelloLen bytes and the options, and
// returns its length.
func (m *HelloMsg) Put(b []byte) int {
	putHello(b, m.Nonce, m.Session, m.Endpoint, m.MaxFrame, m.Window, m.Keep, m.Features, &m.Cookie, &m.Resume)
	binary.LittleEndian.PutUint64(b[52:], m.Origin)
	binary.LittleEndian.PutUint32(b[60:], m.Serial)
	return m.Options.remainder(b)
}

// Parse reads a payload of HelloLen bytes and a remainder.
func (m *HelloMsg) Parse(b []byte) Reason {
	if !helloSized(b) {
		return ReasonBadPayload
	}
	le := binary.LittleEndian
	*m = HelloMsg{Nonce: le.Uint64(b), Session: le.Uint32(b[8:]), Endpoint: le.Uint16(b[12:]),
		MaxFrame: le.Uint16(b[14:]), Window: le.Uint16(b[16:]), Keep: le.Uint16(b[18:]),
		Features: Features(le.Uint32(b[20:])),
		Cookie:   Cookie(b[24:]), Resume: getResume(b[40:]), Origin: le.Uint64(b[52:]), Serial: le.Uint32(b[60:])}
	return m.Options.parse(b[HelloLen:], m.Features)
}

// helloSized reports whether a hello or hello-ack may have the length of b.
func helloSized(b []byte) bool { return len(b) >= HelloLen && len(b) <= HelloLen+HelloRoom }

// HelloStatus is the target's answer to a hello. A status that this version does not
// know refuses the hello too, for a reason of a later version.
type HelloStatus uint8

// The answers.
const (
	HelloAccepted     HelloStatus = iota
	HelloChallenge                // repeat the hello with this cookie
	HelloNoEndpoint               // no endpoint of that number
	HelloFull                     // no room for another session
	HelloBadVersion               // version not spoken
	HelloShuttingDown             // target is closing
	HelloOutdated                 // this session has ended, or a later one of the same origin has begun
	HelloKeyWanted                // the endpoint has an authorization key, and the hello proves none
	HelloKeyUnwanted              // the hello proves an authorization key, and the endpoint has none
	HelloKeyWrong                 // they have different ones
	HelloWaiting                  // the request for a connection waits for its answer: ask again
	HelloConnect                  // the request is accepted: see Options.Connection
	HelloRejected                 // it is rejected
	NumHelloStatuses              // how many there are
)

var helloStatusNames = [NumHelloStatuses]string{"accepted", "cookie challenge", "no such endpoint", "full",
	"version not supported", "shutting down", "outdated", "key wanted", "key not wanted", "wrong key",
	"connection request waits", "connection accepted", "connection rejected"}

// String returns the answer in words.
func (s HelloStatus) String() string { return nameOf(helloStatusNames[:], "hello status", s) }

// HelloAckMsg is the payload of a hello-ack. When the status is HelloAccepted the
// header's epoch is the session's. A challenge has Options.Resident where other answers
// have Resume, and no options: it must not be longer than its hello, whose source may be
// somebody else's address.
type HelloAckMsg struct {
	Nonce    uint64 // of the hello answered
	Session  uint32 // target's session id, which the initiator puts into its frames
	Status   HelloStatus
	MaxFrame uint16   // agreed: the smaller of both, bytes
	Window   uint16   // agreed, frames
	Features Features // of the session, if accepted
	Cookie   Cookie   // for HelloChallenge
	// that of the hello, if the target knows it; all requests up to PSN and those of
	// Early have run, no other ever will
	Resume  Resume
	Life    uint64 // names this life of the target's process: random, and new after a restart
	Lost    bool   // the answers of Resume are forgotten, though it is known how far it got
	Options Options
}

// Put writes the payload into b, which has room for HelloLen bytes and the options, and
// returns its length.
func (m *HelloAckMsg) Put(b []byte) int {
	resume, options := m.Resume, m.Options
	if m.Status == HelloChallenge {
		resume, options.Resident = Resume{Session: uint32(options.Resident), Epoch: uint32(options.Resident >> 32)}, 0
	}
	putHello(b, m.Nonce, m.Session, uint16(m.Status), m.MaxFrame, m.Window, 0, m.Features, &m.Cookie, &resume)
	binary.LittleEndian.PutUint64(b[52:], m.Life)
	binary.LittleEndian.PutUint32(b[60:], 0)
	if m.Lost {
		b[60] = 1
	}
	return options.remainder(b)
}

// Parse reads a payload of HelloLen bytes and a remainder.
func (m *HelloAckMsg) Parse(b []byte) Reason {
	if !helloSized(b) {
		return ReasonBadPayload
	}
	le := binary.LittleEndian
	*m = HelloAckMsg{Nonce: le.Uint64(b), Session: le.Uint32(b[8:]), Status: HelloStatus(b[12]),
		MaxFrame: le.Uint16(b[14:]), Window: le.Uint16(b[16:]), Features: Features(le.Uint32(b[20:])),
		Cookie: Cookie(b[24:]),
		Resume: getResume(b[40:]), Life: le.Uint64(b[52:]), Lost: b[60] == 1}
	switch {
	case b[13]|b[18]|b[19]|b[61]|b[62]|b[63] != 0:
		return ReasonBadPadding
	case b[60] > 1:
		return ReasonBadPayload
	}
	reason := m.Options.parse(b[HelloLen:], m.Features)
	if m.Status == HelloChallenge {
		m.Options.Resident = uint64(m.Resume.Epoch)<<32 | uint64(m.Resume.Session)
		m.Resume = Resume{}
	}
	return reason
}

// putHello writes the part of the layout that hello and hello-ack share; at12 is the
// endpoint of a hello or the status of a hello-ack.
func putHello(b []byte, nonce uint64, session uint32, at12, maxFrame, window, keep uint16, features Features,
	c *Cookie, r *Resume) {
	_ = b[HelloLen-1]
	le := binary.LittleEndian
	le.PutUint64(b, nonce)
	le.PutUint32(b[8:], session)
	le.PutUint16(b[12:], at12)
	le.PutUint16(b[14:], maxFrame)
	le.PutUint16(b[16:], window)
	le.PutUint16(b[18:], keep)
	le.PutUint32(b[helloFeatures:], uint32(features))
	copy(b[24:], c[:])
	le.PutUint32(b[40:], r.Session)
	le.PutUint32(b[44:], r.Epoch)
	le.PutUint32(b[48:], r.PSN)
}

// ResetReason describes why a frame was answered with a reset. A reason that this version
// does not know is taken for ResetUnknownSession: the answer to the next hello tells
// more.
type ResetReason uint8

// The reasons of a reset. Zero is not one of them.
const (
	ResetUnknownSession ResetReason = 1 + iota
	ResetClosed
	ResetShuttingDown
	ResetOutOfWindow
	numResetReasons
)

var resetReasonNames = [numResetReasons]string{"", "unknown session", "closed", "shutting down",
	"out of window"}

// String returns the reason in words.
func (r ResetReason) String() string { return nameOf(resetReasonNames[:], "reset reason", r) }

// ResetMsg is the payload of a reset.
type ResetMsg struct {
	Session uint32 // the id that the offending frame named
	PSN     uint32 // of the offending frame
	Reason  ResetReason
}

// Put writes the payload into b, which has room for ResetLen bytes, and returns ResetLen.
func (m *ResetMsg) Put(b []byte) int {
	_ = b[ResetLen-1]
	le := binary.LittleEndian
	le.PutUint32(b, m.Session)
	le.PutUint32(b[4:], m.PSN)
	le.PutUint32(b[8:], uint32(m.Reason))
	return ResetLen
}

// Parse reads a payload of exactly ResetLen bytes.
func (m *ResetMsg) Parse(b []byte) Reason {
	if len(b) != ResetLen {
		return ReasonBadPayload
	}
	le := binary.LittleEndian
	*m = ResetMsg{Session: le.Uint32(b), PSN: le.Uint32(b[4:]), Reason: ResetReason(b[8])}
	if m.Reason == 0 {
		return ReasonBadPayload
	}
	return checkZero(b[9:12])
}
