// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/mr"
)

// EventKind is the kind of an event; see fi_eq(3).
type EventKind uint32

// The kinds of events that the package itself delivers, with libfabric's numbers.
// EventQueue.Write takes any number.
const (
	EventNotify     EventKind = 0 // FI_NOTIFY: as an error event, the interface is lost
	EventConnReq    EventKind = 1 // FI_CONNREQ: a request for a connection
	EventConnected  EventKind = 2 // FI_CONNECTED; as an error event, there will be no connection
	EventShutdown   EventKind = 3 // FI_SHUTDOWN: the peer has ended the connection, or is gone
	EventMRComplete EventKind = 4 // FI_MR_COMPLETE: Domain.RegisterAsync has ended
	EventAVComplete EventKind = 5 // FI_AV_COMPLETE: AddressVector.InsertAsync has ended
)

// String returns the name of the kind, or its number.
func (k EventKind) String() string {
	switch k {
	case EventNotify:
		return "notify"
	case EventConnReq:
		return "connreq"
	case EventConnected:
		return "connected"
	case EventShutdown:
		return "shutdown"
	case EventMRComplete:
		return "mr_complete"
	case EventAVComplete:
		return "av_complete"
	}
	return fmt.Sprintf("EventKind(%d)", uint32(k))
}

// Event is an entry of an event queue (fi_eq_entry, and fi_eq_err_entry if it has an
// error).
type Event struct {
	Kind    EventKind
	Source  any    // the *Domain, *AddressVector, *endpoint or *PassiveEndpoint that the event is about (fid)
	Context any    // of the call that has ended, or of Source
	Data    uint64 // of an inserted vector: how many were inserted; with an error, the index of the address
	// Addresses are those that InsertAsync has inserted, in the order given; NoAddress
	// stands for one that failed.
	Addresses []Address
	Region    *mr.Region   // that RegisterAsync has registered
	Request   *ConnRequest // of an EventConnReq
	// Param is what the peer gave to Connect, of an EventConnReq, to Accept, of an
	// EventConnected, or to Reject, if that has an error (data of fi_eq_cm_entry,
	// err_data).
	Param []byte
	// Err is nil, except for events that ReadErr returns. ErrnoOf returns its code (err),
	// and its text says more (fi_eq_strerror). prov_errno is empty.
	Err error
}

// EQAttr are the attributes of an event queue.
type EQAttr struct {
	// Size is the most events that may be waiting to be read, or promised to calls under
	// way; more are refused with ErrAgain. It is rounded up to a power of two; 1024.
	Size  int
	Write bool       // the program may write events of its own (FI_WRITE)
	Wait  WaitObject // how callers wait; WaitUnspec
}
