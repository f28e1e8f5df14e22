// SPDX-License-Identifier: Apache-2.0

package wire

import "strconv"

// Reason describes why a packet, frame or record was refused. It indexes counters: see
// NumReasons.
type Reason uint8

// The reasons. The order is stable within one build only; metrics use the names.
const (
	ReasonOK           Reason = iota
	ReasonTruncated           // shorter than its own fields say
	ReasonOversized           // longer than any frame may be
	ReasonBadEncap            // an Ethernet, IP or UDP header that no peer sends
	ReasonFragment            // an IPv4 fragment
	ReasonNotOurs             // well formed, but some other protocol or port
	ReasonBadVersion          // a protocol version other than Version
	ReasonBadCRC              // checksum mismatch: damaged on the way
	ReasonBadType             // frame type 0, which does not exist
	ReasonReservedType        // a frame type of a later version
	ReasonBadFlags            // unknown flag bits, in a frame or in a record
	ReasonBadOps              // number of records impossible for the type of frame
	ReasonBadLane             // lane number of MaxLanes or above
	ReasonBadPadding          // padding or reserved bytes that are not zero
	ReasonBadPayload          // a payload whose length or values do not match the type of frame
	ReasonBadVerb             // unknown record verb
	ReasonReservedVerb        // a record verb kept for an extension that this side has not announced
	ReasonBadDatatype         // datatype of unknown size: the record's end cannot be found
	ReasonBadCount            // count of zero, or above the record's total
	ReasonNoKey               // the first atomic record of a frame names no key
	ReasonBadName             // catalogue name of impossible length
	ReasonTrailing            // bytes left over after the last record
	ReasonBadSource           // a sender's address that is no node's: of a group, a loopback, or none
	NumReasons                // how many reasons there are
)

var reasonNames = [NumReasons]string{
	"ok", "truncated", "oversized", "bad encapsulation", "fragment", "not ours", "bad version", "bad crc", "bad type",
	"reserved type", "bad flags", "bad ops", "bad lane", "bad padding", "bad payload", "bad verb", "reserved verb",
	"bad datatype", "bad count", "no key",
	"bad name", "trailing bytes", "bad source",
}

// String returns the reason in words.
func (r Reason) String() string {
	return nameOf(reasonNames[:], "reason", r)
}

// nameOf looks v up in a table of names, and makes a name of its number where the
// table has none.
func nameOf[T ~uint8](names []string, kind string, v T) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return kind + "(" + strconv.Itoa(int(v)) + ")"
}
