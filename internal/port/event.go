// SPDX-License-Identifier: Apache-2.0

package port

import (
	"errors"
	"fmt"
)

// ErrLost is what an Event.Err wraps: frames no longer reach the process, and the
// interface has to be opened again.
var ErrLost = errors.New("interface can no longer be used")

// EventKind describes what happened to an interface.
type EventKind uint8

// The kinds. An event that ends the use of an interface has an Event.Err.
const (
	Gone           EventKind = iota // removed, or moved to another network namespace; ends the use
	Detached                        // its XDP program was detached; ends the use
	MACChanged                      // peers know it by another address; ends the use
	MTULowered                      // below that at Open, which peers were told; ends the use
	MTUChanged                      // changed otherwise, which does no harm
	Renamed                         //
	Down                            // by the administrator, or its carrier is off, as To says; it may pass
	Up                              // again
	AddressAdded                    // To is served
	AddressRemoved                  // From is no longer served
	Unaddressed                     // and it was the last one that peers on other networks can use
	HopChanged                      // Remote is reached by way of To
	Trouble                         // To says what could not be read; it is tried again
	HostGone                        // the process that has the interface has ended; ends the use
	HostLost                        // likewise, and another one is looked for
	HostFound                       // which is there
	HostRefused                     // which takes the domain in no more, as To says; it is tried again
	// From, a queue that was lent, is open still in some program, as To says; it is
	// tried again
	QueueKept
	QueueBack // and now it is not
	Forwarded // a frame came on From, a queue that is not in use, for the first time
	Unheard   // frames that come on so many queues, From, are lost
)

var eventNames = [...]string{
	Gone: "interface gone", Detached: "XDP program detached", MACChanged: "hardware address changed",
	MTULowered: "MTU lowered", MTUChanged: "MTU changed", Renamed: "interface renamed",
	Down: "interface down", Up: "interface up", AddressAdded: "address added", AddressRemoved: "address removed",
	Unaddressed: "no address left",
	HopChanged:  "next hop changed", Trouble: "changes cannot be followed", HostGone: "daemon gone",
	HostLost: "daemon lost", HostFound: "daemon found", HostRefused: "daemon refuses",
	QueueKept: "lent queue kept", QueueBack: "lent queue back", Forwarded: "frame on a queue that is not in use",
	Unheard: "queues without a socket",
}

// String returns the kind as the beginning of a log line, such as "address
// added".
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("event(%d)", uint8(k))
}

// Event is a change of an interface in use.
type Event struct {
	Kind     EventKind
	Remote   string // HopChanged: the peer's address
	From, To string // the value before and now; empty where there is none
	Err      error  // why the interface can no longer be used; nil while it can
}
