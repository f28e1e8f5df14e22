// SPDX-License-Identifier: Apache-2.0

package node

// InterfaceInfo describes an interface and the mode that it is used in: InterfaceInfo,
// field by field, as devices, hosts and guests have it.
type InterfaceInfo struct {
	Name     string `json:"name"`
	Index    int    `json:"index"`
	MAC      string `json:"mac"`
	MTU      int    `json:"mtu"` // bytes
	Driver   string `json:"driver"`
	Queues   int    `json:"queues"` // in use
	Relayed  int    `json:"relayed,omitempty"`
	XDP      string `json:"xdp"`
	Copy     string `json:"copy"`
	Chunk    int    `json:"chunk"` // bytes of a packet buffer
	HugeUMEM bool   `json:"huge_umem"`
	UDP      bool   `json:"udp"`
	Served   string `json:"served,omitempty"`
	Above    string `json:"above,omitempty"`
	Daemon   string `json:"daemon,omitempty"`
	Lent     bool   `json:"lent,omitempty"`

	Transport string `json:"transport,omitempty"`
	Address   string `json:"address,omitempty"`
	NoXDP     string `json:"no_xdp,omitempty"`
	Beside    string `json:"beside,omitempty"`
}
