// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Options is what a hello or hello-ack says beyond its 64 bytes. With FeatureOptions the
// remainder is a list of options: kind, length, and so many bytes. Kinds that this
// version does not know are skipped.
type Options struct {
	// Class is the class of traffic of the session: that of its requests, and in which
	// the initiator wants the answers. A hello alone has it.
	Class Class
	// Connection makes a hello a request for a connection, and answers one in a
	// hello-ack.
	Connection Connection
	// Resident, in a hello-ack that challenges or accepts, names the life of the sessions
	// and memory that outlive the target's process, because the kernel keeps serving
	// them. 0 means that nothing does.
	Resident uint64
	// Proof shows that the sender knows the authorization key of its endpoint, if Proven.
	// It is the last option.
	Proof  Proof
	Proven bool
}

// Proof is an HMAC-SHA256, under an authorization key, of everything that a hello or
// hello-ack says before it, in its context.
type Proof [32]byte

// Said returns the part of a payload that its proof, the last option, is about.
func Said(payload []byte) []byte { return payload[:len(payload)-len(Proof{})] }

// The kinds of options.
const (
	optionClass      = 1 // codepoint, priority
	optionProof      = 2 // HMAC-SHA256; the last one
	optionConnection = 3 // endpoint, origin, data
	optionResident   = 4 // life
)

// optionHead is the length of kind and length, in bytes.
const optionHead = 2

const residentLen = 8

// any reports whether there is an option to write.
func (o *Options) any() bool { return *o != Options{} }

// put writes the list into b and returns its length.
func (o *Options) put(b []byte) (n int) {
	if c := o.Class; c != (Class{}) {
		n += copy(b[n:], []byte{optionClass, 2, c.DSCP, c.PCP})
	}
	n += o.Connection.put(b[n:])
	if o.Resident != 0 {
		n += copy(b[n:], []byte{optionResident, residentLen})
		binary.LittleEndian.PutUint64(b[n:], o.Resident)
		n += residentLen
	}
	if o.Proven {
		n += copy(b[n:], []byte{optionProof, byte(len(o.Proof))})
		n += copy(b[n:], o.Proof[:])
	}
	return n
}

// parse reads the remainder of a message that announces these features.
func (o *Options) parse(b []byte, features Features) Reason {
	if features&FeatureMore != 0 {
		b = b[min(len(b), moreLen):]
	}
	if features&FeatureOptions == 0 {
		return ReasonOK // a remainder that this version does not know
	}
	for len(b) > 0 {
		if len(b) < optionHead || len(b) < optionHead+int(b[1]) {
			return ReasonBadPayload
		}
		if o.Proven {
			return ReasonBadPayload // the proof is about what comes before it
		}
		kind, value := b[0], b[optionHead:][:b[1]]
		b = b[optionHead+len(value):]
		if r := o.parseOne(kind, value); r != ReasonOK {
			return r
		}
	}
	return ReasonOK
}

func (o *Options) parseOne(kind byte, value []byte) Reason {
	switch kind {
	case optionClass:
		if len(value) != 2 {
			return ReasonBadPayload
		}
		o.Class = Class{DSCP: value[0], PCP: value[1]}
		if o.Class.check() != nil {
			return ReasonBadPayload
		}
	case optionConnection:
		return o.Connection.parse(value)
	case optionResident:
		if len(value) != residentLen {
			return ReasonBadPayload
		}
		o.Resident = binary.LittleEndian.Uint64(value)
	case optionProof:
		if len(value) != len(o.Proof) {
			return ReasonBadPayload
		}
		o.Proof, o.Proven = Proof(value), true
	}
	return ReasonOK
}

// remainder writes what follows the HelloLen bytes of a message: the second word of
// features, in which this version has none, if the first announces one; and the options,
// which it announces. It returns the length of the message.
func (o *Options) remainder(b []byte) int {
	le, n := binary.LittleEndian, HelloLen
	features := Features(le.Uint32(b[helloFeatures:]))
	if features&FeatureMore != 0 {
		le.PutUint32(b[n:], 0)
		n += moreLen
	}
	if o.any() {
		le.PutUint32(b[helloFeatures:], uint32(features|FeatureOptions))
		n += o.put(b[n:])
	}
	return n
}
