// SPDX-License-Identifier: Apache-2.0

package share

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Ask has an endpoint ask for a connection.
type Ask struct {
	Endpoint uint16     `json:"endpoint"`
	Addr     Addr       `json:"addr"`
	Class    wire.Class `json:"class"`
	Data     []byte     `json:"data,omitempty"`
}

// Answer is what the peer has answered. From then on the endpoint accepts its sessions.
type Answer struct {
	Why      session.Reason `json:"why"` // session.Alive, or why there will be no connection
	Endpoint uint16         `json:"endpoint"`
	Origin   uint64         `json:"origin"`
	Data     []byte         `json:"data,omitempty"`
}

// Part has an endpoint ask no more, and accept no sessions.
type Part struct {
	Origin uint64 `json:"origin"` // of the endpoint
	End    bool   `json:"end"`    // also the sessions that it has; only older guests leave it out
}

// Parted is the answer to that.
type Parted struct {
	Met bool `json:"met"` // the endpoint has accepted a session of the peer
}

// Passive is a passive endpoint that the guest makes.
type Passive struct {
	Number  int    `json:"number"` // or -1 for any
	Backlog int    `json:"backlog"`
	Key     []byte `json:"key,omitempty"`
}

// Request is a request for a connection with a passive endpoint of the guest.
type Request struct {
	Origin uint64 `json:"origin"`
	Node   Addr   `json:"node"`
	From   Addr   `json:"from"`
	Data   []byte `json:"data,omitempty"`
}

// Decision answers a request.
type Decision struct {
	Passive  uint16 `json:"passive"`
	Origin   uint64 `json:"origin"` // of the request
	Accepted bool   `json:"accepted"`
	Endpoint uint16 `json:"endpoint"` // of the guest, that accepts
	Data     []byte `json:"data,omitempty"`
}
