// SPDX-License-Identifier: Apache-2.0

// Package control is the daemon's interface for its users: HTTP/1.1 over a Unix
// socket, by which the client commands and Prometheus learn what a daemon serves and
// in which state it is, and ask it to do things. It has no part in the life of an
// operation.
//
//	POST /v1/request   Request to Answer, JSON: a verb, with arguments of its own
//	GET  /v1/status    Status, JSON       the verbs that only look, for people and
//	GET  /v1/regions   []Region, JSON     clients of before there were requests
//	GET  /v1/kept      []Kept, JSON
//	GET  /metrics      Prometheus text format
//	POST /v1/attach    the connection leaves HTTP: if the rules allow that, the program
//	                   uses the daemon's interface by it; see Host.Serve of package host
//	POST /v1/takeover  likewise, for another daemon that takes this one's place
//	POST /v1/capture   likewise, for a user who wants to see packets; see package capture
//
// A daemon's verbs are a table: a new one is an entry there. Both sides send the version
// of the protocol, and refuse any other. When a request by GET fails, the JSON is
// {"error": "…"}. The permissions of the socket, 0660 unless the daemon is told
// otherwise, and of its directory decide who may connect.
package control

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
)

// Status is a daemon's state at one moment.
type Status struct {
	Version       string             `json:"version"`
	PID           int                `json:"pid"`
	UptimeSeconds float64            `json:"uptime_seconds"`
	NetNS         uint64             `json:"netns"` // inode of the network namespace of the interface
	Interface     node.InterfaceInfo `json:"interface"`
	RenamedFrom   string             `json:"renamed_from,omitempty"` // the interface's name as the daemon began
	Metrics       string             `json:"metrics,omitempty"`      // --metrics-address, or "none"
	Address       string             `json:"address"`                // as peers dial it
	Progress      string             `json:"progress"`               // "auto"
	Regions       []Region           `json:"regions"`
	Guests        []Guest            `json:"guests"`         // programs that are attached
	Lent          []host.LentQueue   `json:"lent"`           // queues that can be lent to programs
	Kept          []Kept             `json:"kept"`           // regions that outlive their programs
	VLAN          string             `json:"vlan,omitempty"` // whose frames it takes: "untagged", "any" or an id
	Steering      *Steering          `json:"steering,omitempty"`
	Counters      map[string]uint64  `json:"counters"` // events since the start, as Domain.Stats names them
}

// Region describes memory that the daemon serves.
type Region struct {
	Name    string   `json:"name"`
	Key     string   `json:"key"`      // hexadecimal with 0x, 16 digits
	Size    uint64   `json:"size"`     // bytes
	Access  []string `json:"access"`   // "read", "write"
	AuthKey bool     `json:"auth_key"` // peers have to prove an authorization key
	Backing string   `json:"backing"`  // "anonymous", "memfd", "resident" or "file:" and the path
	Pages   string   `json:"pages"`    // "small", "transparent huge" or "huge"
	Applied Applied  `json:"applied"`
}

// Applied is host.Applied.
type Applied = host.Applied

// GuestRegion describes memory that a program serves by the daemon's interface. Its key
// is the program's secret.
type GuestRegion struct {
	Guest   int      `json:"guest"` // process
	Name    string   `json:"name"`
	Size    uint64   `json:"size"`     // bytes
	Access  []string `json:"access"`   // "read", "write"
	AuthKey bool     `json:"auth_key"` // peers have to prove an authorization key
	Applied Applied  `json:"applied"`
}

// RegionList is the answer to the verb "region-list": the daemon's regions, and up to
// MostGuestRegions of those of programs.
type RegionList struct {
	Regions []Region      `json:"regions"`
	Guests  []GuestRegion `json:"guests"`
	Total   int           `json:"total_of_guests"`
}

// MostGuestRegions is the most regions of programs in one answer.
const MostGuestRegions = 10_000

// Steering is how the NIC was made to deliver frames on the queues in use, and whether it
// does.
type Steering struct {
	Queues int    `json:"queues"` // from 0 on, that hashed traffic goes to
	Rule   bool   `json:"rule"`   // raw Ethernet has a rule for queue 0
	Ports  bool   `json:"ports"`  // and UDP has rules for its port
	Table  bool   `json:"table"`  // the indirection table was set
	Lacks  string `json:"lacks,omitempty"`
	Frames uint64 `json:"frames"` // that have come on the queues in use
	Astray uint64 `json:"astray"` // that have come on others
}

// String says for people how the NIC was steered, and what has come of it.
func (s *Steering) String() string {
	var by []string
	for _, b := range []struct {
		on   bool
		text string
	}{{s.Rule, "a rule on the EtherType"}, {s.Ports, "rules on UDP ports"}, {s.Table, "the indirection table"}} {
		if b.on {
			by = append(by, b.text)
		}
	}
	text := fmt.Sprintf("to %d queues by %s: %d frames came there, %d elsewhere", s.Queues, strings.Join(by, ", "),
		s.Frames, s.Astray)
	if s.Lacks != "" {
		text += "; " + s.Lacks
	}
	return text
}

// Guest describes a program that uses the interface through the daemon.
type Guest struct {
	host.AttachedGuest
	User string `json:"user"` // name of UID, empty if the daemon's machine has none
}

// Kept describes a region that outlives its program.
type Kept struct {
	host.KeptRegion
	User string `json:"user"` // name of UID, empty if the daemon's machine has none
}

// Withdraw are the arguments of the verb "withdraw", which withdraws a region that is
// kept and returns it, a Kept.
type Withdraw struct {
	Name string  `json:"name"`
	UID  *uint32 `json:"uid,omitempty"` // whose; nil if only one user has a region of that name
}

// CreateRegion are the arguments of the verb "create-region", which has the daemon serve
// another region, and returns it, a Region.
type CreateRegion struct {
	Region string `json:"region"` // as after --region of xdpfabd: name=size[:option,…]
}

// RemoveRegion are the arguments of the verb "remove-region", which withdraws a region,
// and returns it, a Region.
type RemoveRegion struct {
	Name string `json:"name"`
}

// Source returns the present state. Several goroutines may call it at once, one
// for each request.
type Source func() (Status, error)

// Errors of this package; errors returned wrap one of them, or one of the
// system's.
var (
	// ErrLive means that a process serves the socket. errors.As with a
	// *LiveError tells which one.
	ErrLive = errors.New("control socket is in use")
	// ErrNoDaemon means that no process serves the socket.
	ErrNoDaemon = errors.New("no daemon serves the control socket")
)

// DefaultPath is where the daemon of an interface has its socket. Network
// namespaces share /run: daemons on interfaces of the same name in several of
// them need paths of their own.
func DefaultPath(ifname string) string { return share.DefaultControl(ifname) }

// Paths of the requests.
const (
	pathRequest = "/v1/request"
	pathVerbs   = "/v1/{verb}"
	pathMetrics = "/metrics"

	pathTakeover = "/v1/takeover"
	pathCapture  = "/v1/capture"
)
