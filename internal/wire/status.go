// SPDX-License-Identifier: Apache-2.0

package wire

// Status is the verdict of the target on one operation record. Every status but OK means
// that the record changed nothing.
type Status uint8

// The statuses.
const (
	StatusOK          Status = iota
	StatusNoKey              // key unknown or revoked
	StatusNoAccess           // region does not grant the right
	StatusOutOfBounds        // outside the region
	StatusMisaligned         // address not a multiple of the element's alignment
	StatusUnsupported        // no such operation for this datatype
	StatusBadCount           // count that cannot be served, for instance results longer than a frame
	StatusNotFound           // no such catalogue entry
	StatusNotExecuted        // refused for another reason, for instance shutting down
	StatusStale              // the key now belongs to another registration than the one meant
	StatusNoRoom             // of a call: the target holds as many as it may
	numStatuses
)

// NumStatuses is how many there are.
const NumStatuses = int(numStatuses)

var statusNames = [NumStatuses]string{"ok", "no such key", "no access", "out of bounds", "misaligned", "unsupported",
	"bad count", "not found", "not executed", "stale incarnation", "no room"}

// String returns the status in words.
func (s Status) String() string { return nameOf(statusNames[:], "status", s) }
