// SPDX-License-Identifier: Apache-2.0

package share

import (
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// What a Call can ask for, with the types of their arguments and results.
const (
	CallAttach     = "attach"     // Attach with the memfd of the segment; Attached with the guest's end of the doorbell
	CallTune       = "tune"       // Tune, before there are endpoints; Tune, of the host
	CallEndpoint   = "endpoint"   // Endpoint; uint16, its number
	CallServe      = "serve"      // Serve; nothing
	CallDrop       = "drop"       // uint64, the origin of an endpoint; nothing
	CallLeave      = "leave"      // likewise, but the endpoint keeps serving the guest's kept regions, if there are any
	CallLink       = "link"       // Addr; wire.Link
	CallPeer       = "peer"       // Peer; uint32, its number in entries
	CallPeers      = "peers"      // PeerList; a list of PeerReply, one for each
	CallRegister   = "register"   // Region with a memfd; nothing
	CallDeregister = "deregister" // uint64, the key; nothing
	CallTallies    = "tallies"    // nothing, with the memfd of Tallies; nothing
	CallObserve    = "observe"    // Observe; nothing
	CallAsk        = "ask"        // Ask; Answer, when it has come
	CallPart       = "part"       // Part; nothing
	CallBlock      = "block"      // Block; uint16, its first number
	CallUnblock    = "unblock"    // uint16, the first number of a block; nothing
	CallPassive    = "passive"    // Passive; uint16, its number
	CallListen     = "listen"     // uint16, the number of a passive endpoint; nothing
	CallHear       = "hear"       // likewise; Request, when there is another one
	CallReply      = "reply"      // Decision; nothing
	CallUnlisten   = "unlisten"   // uint16, the number of a passive endpoint; nothing
	CallKeep       = "keep"       // uint64, the key: the region outlives the guest; nothing
	CallTakeBack   = "take back"  // string, the name of a region that is kept; Region with its memfd
	CallCounters   = "counters"   // nothing; map[string]uint64
	// Addr; string: why no packet of the host's node reaches it, "" if nothing is wrong
	// there. Hosts of former versions refuse it.
	CallOwnFault = "own fault"
)

// Attach begins a conversation.
type Attach struct {
	Version  int      `json:"version"` // of the segment and of the verbs
	Sizes    Sizes    `json:"sizes"`
	Features []string `json:"features,omitempty"` // that the guest has; the host ignores those that it does not know
}

// Attached tells the guest where it is.
type Attached struct {
	Version   int      `json:"version"`
	NetNS     uint64   `json:"netns"`     // inode of the network namespace of the interface
	PID       int      `json:"pid"`       // of the host
	Interface []byte   `json:"interface"` // an xdpfab.InterfaceInfo, JSON
	MAC       wire.MAC `json:"mac"`
	Address   string   `json:"address,omitempty"` // by which peers reach it, as a text
	MTU       int      `json:"mtu"`
	Features  []string `json:"features,omitempty"` // that the host has, too; of an offer, all that it has
}

// Tune is what domains choose of their sessions, ns and frames. A guest chooses no more
// than GiveUp, or 0 for the host's.
type Tune struct {
	GiveUp     time.Duration `json:"give_up"`
	Window     int           `json:"window,omitempty"`
	RTOMin     time.Duration `json:"rto_min,omitempty"`
	BaseRTT    time.Duration `json:"base_rtt,omitempty"`
	IdleRetire time.Duration `json:"idle_retire,omitempty"`
}

// Endpoint is an endpoint that the guest makes.
type Endpoint struct {
	Number    int    `json:"number"`    // or -1 for any
	Highest   bool   `json:"highest"`   // of those that are free, take the highest
	Unordered bool   `json:"unordered"` // see engine.NewUnorderedOrigin
	Origin    uint64 `json:"origin"`    // see engine.Origin.Assume; the guest keeps it for itself
	Serial    uint32 `json:"serial"`    // likewise
	Key       []byte `json:"key,omitempty"`
	Connected bool   `json:"connected,omitempty"` // it accepts the sessions of one peer alone; see Ask and Decision

	Block *uint16 `json:"block,omitempty"` // of a scalable endpoint, that it is a context of
	Posts bool    `json:"posts,omitempty"` // peers know what it posts by the first number of the block
}

// Block is the numbers of a scalable endpoint, one after the other.
type Block struct {
	Number int `json:"number"` // the first one, or -1 for any
	Length int `json:"length"`
}

// Serve describes whether an endpoint accepts sessions.
type Serve struct {
	Endpoint uint16 `json:"endpoint"`
	On       bool   `json:"on"`
	Events   bool   `json:"events"`            // whether it takes them
	Messages bool   `json:"messages"`          // likewise
	Attends  bool   `json:"attends,omitempty"` // it executes what the host cannot: see FeatureAttended
	Calls    bool   `json:"calls,omitempty"`   // a function answers calls: see FeatureCalls
	Tally    int    `json:"tally,omitempty"`   // where to count what peers do through it; 0 for nowhere
}

// Peer names a peer of one of the guest's endpoints.
type Peer struct {
	Origin uint64     `json:"origin"` // of the endpoint
	Addr   Addr       `json:"addr"`
	Class  wire.Class `json:"class"`

	// Next is the next hop on the way to an IP address, as CallLink has told it. With it
	// the host answers at once; without it the host searches for the next hop.
	Next wire.MAC `json:"next,omitzero"`
}

// PeerList names peers of one of the guest's endpoints.
type PeerList struct {
	Origin uint64     `json:"origin"` // of the endpoint
	Addrs  []Addr     `json:"addrs"`  // at most MostPeers
	Class  wire.Class `json:"class"`
}

// MostPeers is how many peers a list may have.
const MostPeers = 128

// PeerReply is the number of a peer in entries, or an error: see Reply.
type PeerReply struct {
	Number uint32   `json:"number,omitempty"`
	Error  string   `json:"error,omitempty"`
	Errno  uint16   `json:"errno,omitempty"`
	Kinds  []string `json:"kinds,omitempty"`
}

// Region is memory that the guest has peers operate on.
type Region struct {
	Key     uint64 `json:"key"`
	Access  uint8  `json:"access"` // mr.Access
	Name    string `json:"name,omitempty"`
	Offset  int    `json:"offset"` // in the memfd
	Length  int    `json:"length"`
	Base    uint64 `json:"base"` // the offset that peers use for the first byte
	AuthKey []byte `json:"auth_key,omitempty"`

	Incarnation uint32 `json:"incarnation"`

	Tally int `json:"tally,omitempty"` // where to count what peers do to it; 0 for nowhere
}

// Observe describes where to count what peers do to a region.
type Observe struct {
	Key   uint64 `json:"key"`
	Tally int    `json:"tally"`
}

// AttachPath is the path to which a program sends POST, on the control socket, to attach:
// the connection is a Talk after the answer.
const AttachPath = "/v1/attach"

// DefaultControl is where the daemon of an interface has its control socket.
func DefaultControl(ifname string) string { return "/run/xdpfabd/" + ifname + ".sock" }
