// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Info describes one way to communicate: an interface, an encapsulation, and everything
// that holds for the endpoints on it (struct fi_info of fi_getinfo(3)). GetInfo returns
// what can be had; Fabric.OpenInfo opens it; Domain.Info and Endpoint.Info return what is
// in force.
//
// It also holds the hints for GetInfo. There the zero value of a field asks for nothing;
// any other value must be offered, or be surpassed by what is offered.
//
// The fields of libfabric that would always be zero are left out, among them mode: xdpfab
// asks nothing of its caller.
type Info struct {
	Caps Caps `json:"caps"` // what endpoints can do
	// of Source, and of the addresses of peers; it selects the encapsulation
	AddrFormat AddrFormat `json:"addr_format"`
	// by which peers address endpoint 0; in hints also by the name of a host
	Source   string       `json:"src_addr"`
	Dest     string       `json:"dest_addr"` // a peer; only what the hints gave, names of hosts resolved
	Transmit TransmitInfo `json:"tx_attr"`
	Receive  ReceiveInfo  `json:"rx_attr"`
	Endpoint EndpointInfo `json:"ep_attr"`
	Domain   DomainInfo   `json:"domain_attr"`
	Fabric   FabricInfo   `json:"fabric_attr"`
	// the modes as the driver promises them, until it is open; in hints, Daemon names
	// the daemon
	Interface InterfaceInfo `json:"nic"`
	// Attach is the way: AttachAlways through the daemon in Interface.Daemon, AttachNever
	// past any daemon. In hints AttachAuto asks for both.
	Attach    AttachMode `json:"attach"`
	Allowance Allowance  `json:"allowance"`
	// Missing is what stands in the way of opening the interface now, each with its
	// remedy: usually privileges. It is empty if nothing is known to.
	Missing []string `json:"missing"`
	// Handle is the request for a connection that the info is of (handle); see
	// ConnRequest.Info.
	Handle *ConnRequest `json:"-"`
}

// TransmitInfo is about operations that an endpoint posts (struct fi_tx_attr).
type TransmitInfo struct {
	Caps    Caps    `json:"caps"`
	OpFlags OpFlags `json:"op_flags"` // that FlagDefaults stands for
	// between operations from one endpoint to another; all that there are, or OrderNone
	MsgOrder     Order        `json:"msg_order"`
	InjectSize   Limit        `json:"inject_size"` // bytes
	Size         Limit        `json:"size"`        // operations in flight
	IOVLimit     Limit        `json:"iov_limit"`   // local buffers of one operation
	RMAIOVLimit  Limit        `json:"rma_iov_limit"`
	TrafficClass TrafficClass `json:"tclass"`
}

// ReceiveInfo is about what an endpoint takes from its peers (struct fi_rx_attr).
type ReceiveInfo struct {
	Caps    Caps    `json:"caps"`
	OpFlags OpFlags `json:"op_flags"` // that FlagDefaults stands for in receives
	// in which the operations of a peer's endpoint apply, if it needs an order
	MsgOrder         Order `json:"msg_order"`
	TotalBufferedRcv Limit `json:"total_buffered_recv"` // bytes of messages that wait for a receive
	Size             Limit `json:"size"`                // receives that can be posted
	IOVLimit         Limit `json:"iov_limit"`           // buffers of one receive
}

// OrderSizes are the sizes, in bytes, up to which data is ordered as the order of
// operations promises: read after write, write after read, write after write.
type OrderSizes struct {
	RAW Limit `json:"raw"`
	WAR Limit `json:"war"`
	WAW Limit `json:"waw"`
}

// EndpointInfo is about endpoints (struct fi_ep_attr).
type EndpointInfo struct {
	Type            EndpointType `json:"type"`
	Protocol        Protocol     `json:"protocol"`
	ProtocolVersion uint32       `json:"protocol_version"`
	// bytes of a message, or of operands in one call, whatever the datatype
	MaxMsgSize   Limit      `json:"max_msg_size"`
	AtomicOrder  OrderSizes `json:"max_order_atomic"` // max_order_raw_size and so on, of atomics
	RMAOrder     OrderSizes `json:"max_order_rma"`    // the same of RMA
	MemTagFormat uint64     `json:"mem_tag_format"`   // TagGeneric; or as in the hints, since masks are free
	TXContexts   Limit      `json:"tx_ctx_cnt"`
	RXContexts   Limit      `json:"rx_ctx_cnt"`
	AuthKey      AuthKey    `json:"auth_key"`
}

// DomainInfo is about a domain (struct fi_domain_attr of fi_domain(3)). Counts and limits
// are enforced, or Unlimited.
type DomainInfo struct {
	// Instance, in hints, is an open domain, to which the result is then restricted. In a
	// result it is the open domain that is described, or nil.
	Instance        *Domain      `json:"-"`
	Name            string       `json:"name"` // of the interface
	Threading       Threading    `json:"threading"`
	ControlProgress ProgressMode `json:"control_progress"`
	Progress        ProgressMode `json:"progress"` // of data (data_progress)
	ResourceMgmt    ResourceMgmt `json:"resource_mgmt"`
	AVType          AVType       `json:"av_type"`
	MRMode          MRMode       `json:"mr_mode"`     // what the caller has to do; in hints, what the caller can do
	MRKeySize       Limit        `json:"mr_key_size"` // bytes
	CQDataSize      Limit        `json:"cq_data_size"`
	CQs             Limit        `json:"cq_cnt"`
	Endpoints       Limit        `json:"ep_cnt"`
	TXContexts      Limit        `json:"tx_ctx_cnt"` // parallel engines, one for each queue
	RXContexts      Limit        `json:"rx_ctx_cnt"`
	MaxEPTX         Limit        `json:"max_ep_tx_ctx"`
	MaxEPRX         Limit        `json:"max_ep_rx_ctx"`
	MaxEPSharedTX   Limit        `json:"max_ep_stx_ctx"`
	MaxEPSharedRX   Limit        `json:"max_ep_srx_ctx"`
	Counters        Limit        `json:"cntr_cnt"`
	MRIOVLimit      Limit        `json:"mr_iov_limit"`
	Caps            Caps         `json:"caps"`
	AuthKey         AuthKey      `json:"auth_key"`
	AuthKeySize     Limit        `json:"auth_key_size"`
	MaxErrData      Limit        `json:"max_err_data"` // bytes
	MRs             Limit        `json:"mr_cnt"`
	TrafficClass    TrafficClass `json:"tclass"`
	MaxCounter      uint64       `json:"max_cntr_value"`
	MaxErrCounter   uint64       `json:"max_err_cntr_value"`
}

// FabricInfo is about the network (struct fi_fabric_attr).
type FabricInfo struct {
	Name            string  `json:"name"` // "ethernet", or the prefix of the IP addresses
	Provider        string  `json:"prov_name"`
	ProviderVersion Version `json:"prov_version"`
	API             Version `json:"api_version"` // in hints, the least that the caller needs
}

// Clone returns a copy that shares nothing with i but the Domain.Instance (fi_dupinfo).
func (i *Info) Clone() *Info {
	c := *i
	c.Missing = slices.Clone(i.Missing)
	c.Domain.AuthKey = slices.Clone(i.Domain.AuthKey)
	c.Endpoint.AuthKey = slices.Clone(i.Endpoint.AuthKey)
	return &c
}

// String returns every field on a line of its own, under the names of libfabric
// (fi_tostr of FI_TYPE_INFO).
func (i *Info) String() string {
	var b strings.Builder
	b.WriteString("fi_info:\n")
	writeFields(&b, "    ", reflect.ValueOf(*i))
	return b.String()
}

// writeFields writes the fields of a structure, those of structures in it further in.
func writeFields(b *strings.Builder, indent string, v reflect.Value) {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch f := v.Field(i); {
		case name == "-":
		case f.Kind() == reflect.Struct:
			fmt.Fprintf(b, "%s%s:\n", indent, name)
			writeFields(b, indent+"    ", f)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.String:
			fmt.Fprintf(b, "%s%s: [%s]\n", indent, name, strings.Join(f.Interface().([]string), "; "))
		default:
			fmt.Fprintf(b, "%s%s: %v\n", indent, name, f.Interface())
		}
	}
}
