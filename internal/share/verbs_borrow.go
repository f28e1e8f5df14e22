// SPDX-License-Identifier: Apache-2.0

package share

import (
	"encoding/json"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Requests of a queue's borrower, in addition to CallLink, CallDrop and CallCounters.
const (
	// Borrow; Borrowed with socket and memory of the queue, and of one end of a cross
	// ring. It comes in place of CallAttach
	CallBorrow = "borrow"
	CallNumber = "number" // Number; uint16, the first of the numbers of endpoints that are the borrower's now
	CallFollow = "follow" // Follow; nothing. Moved comes unasked, in a Reply of ID 0, whenever the way is another one
	CallForget = "forget" // wire.Addr, whose way is no longer of interest; nothing
	CallSilent = "silent" // netip.Addr of a peer that does not answer; nothing
)

// Borrow begins a conversation about a queue.
type Borrow struct {
	Version int `json:"version"`
	// Segments is whether the borrower takes packets that lie in several buffers. A
	// program of an earlier release would take each buffer for a packet.
	Segments bool `json:"segments,omitempty"`
}

// Borrowed tells the borrower where it is, and what it has.
type Borrowed struct {
	Attached
	Parts json.RawMessage `json:"parts"` // a port.Parts
}

// Number asks for numbers of endpoints.
type Number struct {
	Number  int  `json:"number"`  // the first, or -1 for any
	Count   int  `json:"count"`   // one after the other
	Highest bool `json:"highest"` // of those that are free, take the highest; of one alone
}

// Follow describes which way the borrower knows to an address.
type Follow struct {
	Addr wire.Addr `json:"addr"`
	Link wire.Link `json:"link"`
}

// Moved is the new way to an address.
type Moved Follow
