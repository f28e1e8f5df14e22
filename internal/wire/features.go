// SPDX-License-Identifier: Apache-2.0

package wire

import "fmt"

// Features is a set of extensions of version 1 of the protocol. A hello announces those
// that the initiator knows, the hello-ack those that the target knows as well: the
// features of the session. A receiver ignores bits that it does not know; a sender uses
// no feature that the session does not have.
type Features uint32

// The features that have a bit.
const (
	FeatureMemory   Features = 1 << 0 // remote read and write: verbs 10 to 1f
	FeatureMessages Features = 1 << 1 // send and tagged send: verbs 20 to 3f
	// FeatureUnordered lets the target run requests as they arrive. An initiator
	// announces it only for a session that needs no order.
	FeatureUnordered Features = 1 << 4
	FeatureOptions   Features = 1 << 5 // the remainder of this very message is a list of Options
	FeatureNotices   Features = 1 << 6 // remote CQ data: VerbNotice
	// FeatureTaggedAtomics goes with FeatureMessages: verbs 31 to 33.
	FeatureTaggedAtomics Features = 1 << 7
	FeatureRiders        Features = 1 << 8 // requests carry acks of other sessions: Rider
	// FeaturePadding wants requests to be as long as their answers: FlagPadded. A target
	// grants it that turns packets into answers and has no room behind them.
	FeaturePadding Features = 1 << 9
	FeatureEchoes  Features = 1 << 10 // acks say which probe they answer: FlagEcho
	// FeatureDelays lets the target delay acks: FlagDelay.
	FeatureDelays Features = 1 << 11
	// FeatureLongProbes lets a probe that wants its number back, and the ack that has it,
	// be as long as any frame of the session: so the initiator finds out whether frames
	// of that length pass.
	FeatureLongProbes Features = 1 << 12
	FeatureSignals    Features = 1 << 13 // together with FeatureMemory: VerbSignal
	FeatureWaits      Features = 1 << 14 // VerbWait, and frames of tickets
	FeatureCalls      Features = 1 << 15 // VerbCall
	FeatureMore       Features = 1 << 31 // another word of features begins the remainder
)

// Offered are those that a node of this release knows. FeatureUnordered it announces only
// where it applies.
const Offered = FeatureMemory | FeatureMessages | FeatureUnordered | FeatureNotices | FeatureTaggedAtomics |
	FeatureRiders | FeaturePadding | FeatureEchoes | FeatureDelays | FeatureLongProbes | FeatureSignals | FeatureWaits |
	FeatureCalls

// featureNames are what people call them.
var featureNames = []struct {
	bit  Features
	name string
}{
	{FeatureMemory, "memory"}, {FeatureMessages, "messages"}, {FeatureUnordered, "unordered"},
	{FeatureOptions, "options"}, {FeatureNotices, "notices"}, {FeatureTaggedAtomics, "tagged-atomics"},
	{FeatureRiders, "riders"}, {FeaturePadding, "padding"}, {FeatureEchoes, "echoes"}, {FeatureDelays, "delays"},
	{FeatureLongProbes, "long-probes"}, {FeatureSignals, "signals"}, {FeatureWaits, "waits"}, {FeatureCalls, "calls"},
}

// Names returns the names of the features of a set, in the order of their bits.
func (f Features) Names() (names []string) {
	for _, n := range featureNames {
		if f&n.bit != 0 {
			names = append(names, n.name)
			f &^= n.bit
		}
	}
	for bit := range 32 { // of a later release
		if f&(1<<bit) != 0 {
			names = append(names, fmt.Sprintf("bit-%d", bit))
		}
	}
	return names
}

// moreLen is the length of the word that FeatureMore announces, in bytes.
const moreLen = 4

// Allow reports whether records of a verb may be sent in a session that has these
// features.
func (f Features) Allow(v Verb) bool {
	switch {
	case v.Atomic(), v == VerbLookup, v == VerbList:
		return true
	case v == VerbWait:
		return f&FeatureWaits != 0
	case v == VerbSignal:
		const both = FeatureMemory | FeatureSignals
		return f&both == both
	case v >= firstMemory && v <= lastMemory:
		return f&FeatureMemory != 0
	case v == VerbCall:
		return f&FeatureCalls != 0
	case v.TaggedAtomic():
		const both = FeatureMessages | FeatureTaggedAtomics
		return f&both == both
	case v >= firstMessage && v <= lastMessage:
		return f&FeatureMessages != 0
	case v == VerbNotice:
		return f&FeatureNotices != 0
	}
	return false
}
