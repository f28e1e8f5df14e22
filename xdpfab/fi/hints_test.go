// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/version"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

const (
	allAtomicOrders = fi.OrderAtomicRAR | fi.OrderAtomicRAW | fi.OrderAtomicWAR | fi.OrderAtomicWAW
	allRMAOrders    = fi.OrderRMARAR | fi.OrderRMARAW | fi.OrderRMAWAR | fi.OrderRMAWAW
	messageOrders   = fi.OrderRAS | fi.OrderWAS | fi.OrderSAR | fi.OrderSAW | fi.OrderSAS
	allOrders       = allAtomicOrders | allRMAOrders | fi.OrderRAR | fi.OrderRAW | fi.OrderWAR | fi.OrderWAW | messageOrders
	initiatingCaps  = fi.CapRead | fi.CapWrite | fi.CapSend
	targetCaps      = fi.CapRemoteRead | fi.CapRemoteWrite | fi.CapRecv
	primaryCaps     = fi.CapMsg | fi.CapTagged | fi.CapDirectedRecv | fi.CapAtomic | fi.CapRMA | fi.CapNamedRX | fi.CapAVUserID
)

// What libfabric has and xdpfab does not, by libfabric's numbers.
const (
	capMulticast   = fi.Caps(1 << 5)
	capCollective  = fi.Caps(1 << 6)
	capPeer        = fi.Caps(1 << 43)
	capXPU         = fi.Caps(1 << 44)
	capHMEM        = fi.Caps(1 << 47)
	capVariableMsg = fi.Caps(1 << 48)
	capRMAPmem     = fi.Caps(1 << 49)

	mrScalable = fi.MRMode(1 << 1)
	mrLocal    = fi.MRMode(1 << 2)
	mrRaw      = fi.MRMode(1 << 3)
	mrEndpoint = fi.MRMode(1 << 9)
	mrXPUDesc  = fi.MRMode(1 << 12)

	endpointDgram  = fi.EndpointType(2)
	commitComplete = fi.OpFlags(1 << 30)
)

// ofOneType returns the infos of reliable datagram endpoints, if the hints do not ask for
// a type. Those of connected endpoints, which are like them, must follow.
func ofOneType(h *fi.Info, list []fi.Info) []fi.Info {
	if h != nil && h.Endpoint.Type != fi.EndpointUnspec {
		return list
	}
	n := 0
	for n < len(list) && list[n].Endpoint.Type == fi.EndpointRDM {
		n++
	}
	for _, i := range list[n:] {
		if i.Endpoint.Type != fi.EndpointMsg {
			return list // out of order, so the caller finds too many
		}
	}
	return list[:n]
}

// Each hint is met or refused by name, and what it asks for is in the result.
func TestHints(t *testing.T) {
	fi.NotOverSockets(t, "it names peers by Ethernet addresses")
	d, other, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer d.CloseAll()
	defer other.CloseAll()
	type hint = func(*fi.Info)
	type check = func(*fi.Info) bool
	met := func(*fi.Info) bool { return true }
	for name, c := range map[string]struct {
		set     hint
		refused string // what the error says; empty if the hint is met
		holds   check
	}{
		"nothing":   {func(h *fi.Info) {}, "", met},
		"atomics":   {func(h *fi.Info) { h.Caps = fi.CapAtomic }, "", func(i *fi.Info) bool { return i.Caps&(initiatingCaps|targetCaps) == initiatingCaps|targetCaps }},
		"initiator": {func(h *fi.Info) { h.Caps = fi.CapAtomic | fi.CapRead }, "", func(i *fi.Info) bool { return i.Caps&targetCaps == 0 && i.EndpointAttr().InitiateOnly }},
		"target":    {func(h *fi.Info) { h.Caps = fi.CapAtomic | fi.CapRemoteWrite }, "", func(i *fi.Info) bool { return i.Receive.Caps&targetCaps == targetCaps }},
		"fence":     {func(h *fi.Info) { h.Caps = fi.CapAtomic | fi.CapFence }, "", func(i *fi.Info) bool { return i.Transmit.Caps&fi.CapFence != 0 }},
		"messages": {func(h *fi.Info) { h.Caps = fi.CapMsg | fi.CapTagged | fi.CapDirectedRecv }, "", func(i *fi.Info) bool {
			return i.Caps&(primaryCaps&^(fi.CapNamedRX|fi.CapAVUserID)) == fi.CapMsg|fi.CapTagged|fi.CapDirectedRecv && i.Receive.Caps&fi.CapMultiRecv != 0
		}},
		"sender": {func(h *fi.Info) { h.Caps = fi.CapMsg | fi.CapSend }, "", func(i *fi.Info) bool {
			return i.EndpointAttr().InitiateOnly && i.Caps&(fi.CapRecv|fi.CapMultiRecv) == 0
		}},
		"receiver":                          {func(h *fi.Info) { h.Caps = fi.CapMsg | fi.CapRecv }, "", func(i *fi.Info) bool { return !i.EndpointAttr().InitiateOnly }},
		"directed receives of a connection": {func(h *fi.Info) { h.Endpoint.Type, h.Caps = fi.EndpointMsg, fi.CapDirectedRecv }, "caps directed_recv: not offered", nil},
		"default flags of receives": {func(h *fi.Info) { h.Receive.OpFlags = fi.FlagMultiRecv }, "", func(i *fi.Info) bool {
			return i.EndpointAttr().ReceiveFlags == fi.FlagMultiRecv
		}},
		"peeks always": {func(h *fi.Info) { h.Receive.OpFlags = fi.FlagPeek }, "rx_attr.op_flags peek: not for all operations", nil},
		"memory for messages": {func(h *fi.Info) { h.Receive.TotalBufferedRcv = 1 << 25 }, "", func(i *fi.Info) bool {
			return i.EndpointAttr().BufferedReceive == 1<<25
		}},
		"much memory":          {func(h *fi.Info) { h.Receive.TotalBufferedRcv = 1 << 31 }, "rx_attr.total_buffered_recv 2147483648: want at most 1073741824", nil},
		"pieces of receives":   {func(h *fi.Info) { h.Receive.IOVLimit = 1024 }, "", met},
		"more pieces":          {func(h *fi.Info) { h.Receive.IOVLimit = 1025 }, "rx_attr.iov_limit 1025: want at most 1024", nil},
		"fields of tags":       {func(h *fi.Info) { h.Endpoint.MemTagFormat = 0xffff_0000_ffff_0000 }, "", func(i *fi.Info) bool { return i.Endpoint.MemTagFormat == 0xffff_0000_ffff_0000 }},
		"any fields of tags":   {func(h *fi.Info) {}, "", func(i *fi.Info) bool { return i.Endpoint.MemTagFormat == fi.TagGeneric }},
		"unexpected variables": {func(h *fi.Info) { h.Caps = capVariableMsg | fi.CapMsg }, "caps variable_msg: not offered", nil},
		"rma": {func(h *fi.Info) { h.Caps, h.Transmit.Caps = fi.CapRMA, fi.CapRMA }, "", func(i *fi.Info) bool {
			return i.Caps&primaryCaps == fi.CapRMA|fi.CapNamedRX|fi.CapAVUserID && i.Transmit.Caps&fi.CapRMA != 0
		}},
		"tagged":      {func(h *fi.Info) { h.Transmit.Caps = fi.CapRMA | fi.CapTagged }, "", met},
		"domain caps": {func(h *fi.Info) { h.Domain.Caps = capCollective | fi.CapLocalComm }, "domain_attr.caps collective: not offered", nil},
		"user IDs": {func(h *fi.Info) { h.Domain.Caps, h.Caps = fi.CapAVUserID, fi.CapAVUserID|fi.CapAtomic }, "", func(i *fi.Info) bool {
			return i.Domain.Caps&fi.CapAVUserID != 0 && i.Caps&(fi.CapAVUserID|fi.CapAtomic) == fi.CapAVUserID|fi.CapAtomic
		}},
		"shared vectors": {func(h *fi.Info) { h.Domain.Caps, h.Caps = fi.CapSharedAV, fi.CapSharedAV|fi.CapAtomic }, "", func(i *fi.Info) bool {
			return i.Domain.Caps&fi.CapSharedAV != 0 && i.Caps&fi.CapSharedAV != 0
		}},
		"rdm":            {func(h *fi.Info) { h.Endpoint.Type = fi.EndpointRDM }, "", met},
		"connected":      {func(h *fi.Info) { h.Endpoint.Type = fi.EndpointMsg }, "", func(i *fi.Info) bool { return i.EndpointAttr().Type == fi.EndpointMsg }},
		"unreliable":     {func(h *fi.Info) { h.Endpoint.Type = endpointDgram }, "ep_attr.type dgram: want rdm", nil},
		"named contexts": {func(h *fi.Info) { h.Endpoint.Type, h.Caps = fi.EndpointMsg, fi.CapNamedRX }, "caps named_rx_ctx: not offered", nil},
		"protocol":       {func(h *fi.Info) { h.Endpoint.Protocol = 7 }, "ep_attr.protocol Protocol(0x7): want xdpfab", nil},
		"later protocol": {func(h *fi.Info) { h.Endpoint.ProtocolVersion = 99 }, "protocol_version 99: want at most", nil},
		"big messages":   {func(h *fi.Info) { h.Endpoint.MaxMsgSize = 1 << 20 }, "", func(i *fi.Info) bool { return i.Endpoint.MaxMsgSize == math.MaxUint32 }},
		"any message":    {func(h *fi.Info) { h.Endpoint.MaxMsgSize = fi.Unlimited }, "max_msg_size unlimited: want at most", nil},
		"atomic order": {func(h *fi.Info) { h.Transmit.MsgOrder = allAtomicOrders }, "", func(i *fi.Info) bool {
			return i.Transmit.MsgOrder == allOrders && i.Receive.MsgOrder == allOrders
		}},
		"no order": {func(h *fi.Info) { h.Transmit.MsgOrder = fi.OrderNone }, "", func(i *fi.Info) bool {
			return i.Transmit.MsgOrder == fi.OrderNone && i.Endpoint.AtomicOrder == fi.OrderSizes{} && i.Endpoint.RMAOrder == fi.OrderSizes{} && i.EndpointAttr().MsgOrder == fi.OrderNone
		}},
		"no order of a size": {func(h *fi.Info) { h.Transmit.MsgOrder, h.Endpoint.AtomicOrder.WAW = fi.OrderNone, 8 }, "max_order_atomic.waw 8: want at most 0", nil},
		"none and some":      {func(h *fi.Info) { h.Transmit.MsgOrder = fi.OrderNone | fi.OrderAtomicWAW }, "tx_attr.msg_order none: not promised", nil},
		"order of sends":     {func(h *fi.Info) { h.Transmit.MsgOrder = fi.OrderSAS | fi.OrderAtomicRAR }, "", func(i *fi.Info) bool { return i.Transmit.MsgOrder == allOrders }},
		"combined order":     {func(h *fi.Info) { h.Receive.MsgOrder = fi.OrderWAW }, "", met},
		"sends and writes":   {func(h *fi.Info) { h.Receive.MsgOrder = fi.OrderSAW | fi.OrderWAW }, "", met},
		"size of order":      {func(h *fi.Info) { h.Endpoint.AtomicOrder.WAW = 1 << 30 }, "", func(i *fi.Info) bool { return i.Endpoint.AtomicOrder.WAW == fi.Unlimited }},
		"RMA order":          {func(h *fi.Info) { h.Endpoint.RMAOrder.RAW = 1 << 40 }, "", func(i *fi.Info) bool { return i.Endpoint.RMAOrder.RAW == fi.Unlimited }},
		"no RMA order":       {func(h *fi.Info) { h.Transmit.MsgOrder, h.Endpoint.RMAOrder.RAW = fi.OrderNone, 1 }, "max_order_rma.raw 1: want at most 0", nil},
		"inject":             {func(h *fi.Info) { h.Transmit.InjectSize = 16 }, "", func(i *fi.Info) bool { return i.Transmit.InjectSize >= 16 }},
		"big inject":         {func(h *fi.Info) { h.Transmit.InjectSize = 1 << 20 }, "tx_attr.inject_size 1048576: want at most", nil},
		"queue":              {func(h *fi.Info) { h.Transmit.Size = 3000 }, "", func(i *fi.Info) bool { return i.Transmit.Size == 4096 && i.EndpointAttr().Size == 4096 }},
		"long queue":         {func(h *fi.Info) { h.Transmit.Size = 1 << 30 }, "tx_attr.size 1073741824: want at most 1048576", nil},
		"negative":           {func(h *fi.Info) { h.Transmit.Size = -7 }, "tx_attr.size -7: want at most", nil},
		"receives":           {func(h *fi.Info) { h.Receive.Size = 3000 }, "", func(i *fi.Info) bool { return i.Receive.Size == 4096 && i.EndpointAttr().ReceiveSize == 4096 }},
		"many receives":      {func(h *fi.Info) { h.Receive.Size = 1 << 30 }, "rx_attr.size 1073741824: want at most 1048576", nil},
		"extents":            {func(h *fi.Info) { h.Transmit.RMAIOVLimit = 1000 }, "", met},
		"delivery":           {func(h *fi.Info) { h.Transmit.OpFlags = fi.FlagDeliveryComplete }, "", met},
		"fence always":       {func(h *fi.Info) { h.Transmit.OpFlags = fi.FlagFence }, "op_flags fence: not for all operations", nil},
		"traffic class": {func(h *fi.Info) { h.Transmit.TrafficClass = fi.TrafficLowLatency }, "", func(i *fi.Info) bool {
			return i.Transmit.TrafficClass == fi.TrafficLowLatency && i.EndpointAttr().TrafficClass == fi.TrafficLowLatency
		}},
		"codepoint":      {func(h *fi.Info) { h.Transmit.TrafficClass = fi.TrafficDSCP(11) }, "", func(i *fi.Info) bool { return i.Transmit.TrafficClass.DSCP() == 11 }},
		"no such class":  {func(h *fi.Info) { h.Transmit.TrafficClass = fi.TrafficDSCP(64) }, "tx_attr.tclass dscp(64): want unspec", nil},
		"domain's class": {func(h *fi.Info) { h.Domain.TrafficClass = fi.TrafficBulkData }, "domain_attr.tclass bulk_data: want unspec, with which the domain is open", nil},
		"safe":           {func(h *fi.Info) { h.Domain.Threading = fi.ThreadSafe }, "", met},
		"threads":        {func(h *fi.Info) { h.Domain.Threading = fi.ThreadCompletion }, "", func(i *fi.Info) bool { return i.Domain.Threading == fi.ThreadSafe }},
		"manual":         {func(h *fi.Info) { h.Domain.Progress = fi.ProgressManual }, "", func(i *fi.Info) bool { return i.Domain.Progress == fi.ProgressAuto }},
		"manual control": {func(h *fi.Info) { h.Domain.ControlProgress = fi.ProgressManual }, "", func(i *fi.Info) bool { return i.Domain.ControlProgress == fi.ProgressAuto }},
		"protection":     {func(h *fi.Info) { h.Domain.ResourceMgmt = fi.RMDisabled }, "", func(i *fi.Info) bool { return i.Domain.ResourceMgmt == fi.RMEnabled }},
		"address map":    {func(h *fi.Info) { h.Domain.AVType = fi.AVMap }, "", func(i *fi.Info) bool { return i.Domain.AVType == fi.AVTable }},
		"MR scalable":    {func(h *fi.Info) { h.Domain.MRMode = mrScalable }, "", func(i *fi.Info) bool { return i.Domain.MRMode == 0 }},
		"MR basic":       {func(h *fi.Info) { h.Domain.MRMode = fi.MRBasic }, "mr_mode basic: want none, with which the domain is open", nil},
		"MR bits":        {func(h *fi.Info) { h.Domain.MRMode = mrLocal | mrRaw | mrEndpoint }, "", func(i *fi.Info) bool { return i.Domain.MRMode == 0 }},
		"MR basic and":   {func(h *fi.Info) { h.Domain.MRMode = fi.MRBasic | mrLocal }, "mr_mode basic|local: want basic or scalable alone", nil},
		"wide keys":      {func(h *fi.Info) { h.Domain.MRKeySize = 16 }, "mr_key_size 16: want at most 8", nil},
		"remote data":    {func(h *fi.Info) { h.Domain.CQDataSize = 16 }, "cq_data_size 16: want at most 8", nil},
		"many queues":    {func(h *fi.Info) { h.Domain.CQs, h.Domain.Counters, h.Domain.MRs = 1e6, 1e6, 1e6 }, "", met},
		"endpoints":      {func(h *fi.Info) { h.Domain.Endpoints = 1<<16 + 1 }, "ep_cnt 65537: want at most 65536", nil},
		"scalable": {func(h *fi.Info) { h.Domain.MaxEPTX, h.Endpoint.TXContexts, h.Endpoint.RXContexts = 128, 4, 2 }, "", func(i *fi.Info) bool {
			return i.ScalableAttr() == fi.ScalableAttr{TXContexts: 4, RXContexts: 2} && i.Domain.MaxEPTX == 128 && i.Domain.MaxEPRX == 128
		}},
		"too scalable": {func(h *fi.Info) { h.Domain.MaxEPTX = 129 }, "max_ep_tx_ctx 129: want at most 128", nil},
		"shared": {func(h *fi.Info) { h.Domain.MaxEPSharedTX, h.Endpoint.TXContexts = 1<<16, fi.SharedContext }, "",
			func(i *fi.Info) bool { return i.Endpoint.TXContexts == fi.SharedContext }},
		"shared receives": {func(h *fi.Info) { h.Domain.MaxEPSharedRX, h.Endpoint.RXContexts = 1<<16, fi.SharedContext }, "",
			func(i *fi.Info) bool { return i.Endpoint.RXContexts == fi.SharedContext }},
		"no such thread":  {func(h *fi.Info) { h.Domain.Threading = 99 }, "threading Threading(99): want safe", nil},
		"no such table":   {func(h *fi.Info) { h.Domain.AVType, h.Domain.ResourceMgmt = 99, 98 }, "av_type AVType(99): want table", nil},
		"no progress":     {func(h *fi.Info) { h.Domain.Progress = 99 }, "progress ProgressMode(99): want auto", nil},
		"an empty key":    {func(h *fi.Info) { h.Endpoint.AuthKey = []byte{} }, "", met},
		"receive side":    {func(h *fi.Info) { h.Domain.MaxEPRX, h.Domain.MaxEPSharedRX = 1, 1<<16+1 }, "max_ep_srx_ctx 65537: want at most 65536", nil},
		"vectors of MR":   {func(h *fi.Info) { h.Domain.MRIOVLimit = 2 }, "mr_iov_limit 2: want at most 1", nil},
		"data of errors":  {func(h *fi.Info) { h.Domain.MaxErrData = 64 }, "max_err_data 64: want at most 0", nil},
		"authorization":   {func(h *fi.Info) { h.Domain.AuthKey = []byte{1, 2} }, "domain_attr.auth_key of 2 bytes: the domain is open with another one, or none", nil},
		"endpoint's key":  {func(h *fi.Info) { h.Endpoint.AuthKey = []byte{1, 2} }, "", func(i *fi.Info) bool { return bytes.Equal(i.EndpointAttr().AuthKey, []byte{1, 2}) }},
		"long key":        {func(h *fi.Info) { h.Endpoint.AuthKey = make([]byte, 65) }, "ep_attr.auth_key of 65 bytes: want at most 64", nil},
		"size of keys":    {func(h *fi.Info) { h.Domain.AuthKeySize = 64 }, "", func(i *fi.Info) bool { return i.Domain.AuthKeySize == 0 }},
		"key by AV":       {func(h *fi.Info) { h.Domain.AuthKeySize = fi.Unlimited }, "auth_key_size unlimited: want at most 64", nil},
		"big counters":    {func(h *fi.Info) { h.Domain.MaxCounter = math.MaxUint64 }, "", met},
		"name":            {func(h *fi.Info) { h.Domain.Name = "pipe" }, "", met},
		"another name":    {func(h *fi.Info) { h.Domain.Name = "eth7" }, `domain_attr.name eth7: want pipe`, nil},
		"driver":          {func(h *fi.Info) { h.Interface.Driver = "ice" }, "nic.driver ice: want memory", nil},
		"provider":        {func(h *fi.Info) { h.Fabric.Provider = "tcp" }, "prov_name tcp: want xdpfab", nil},
		"version":         {func(h *fi.Info) { h.Fabric.API = fi.MakeVersion(1, 5) }, "", func(i *fi.Info) bool { return i.Fabric.API == fi.APIVersion }},
		"later version":   {func(h *fi.Info) { h.Fabric.API = fi.MakeVersion(3, 0) }, "api_version 3.0: want at most 2.6", nil},
		"IP":              {func(h *fi.Info) { h.AddrFormat = fi.AddrIPv4 }, "addr_format ipv4: want ethernet", nil},
		"peer":            {func(h *fi.Info) { h.Dest = other.Name(3) }, "", func(i *fi.Info) bool { return i.Dest == other.Name(3) }},
		"peer by IP":      {func(h *fi.Info) { h.Dest = "fd00::2" }, "addr_format ipv6: want ethernet", nil},
		"no peer":         {func(h *fi.Info) { h.Dest = "no body" }, "nor is it the name of a host", nil},
		"mixed":           {func(h *fi.Info) { h.AddrFormat, h.Dest = fi.AddrIPv4, "fd00::2" }, "format ipv6: want ipv4", nil},
		"source":          {func(h *fi.Info) { h.Source = d.Name(5) }, "", func(i *fi.Info) bool { return i.Source == d.Name(5) && i.EndpointAttr().Number == 5 }},
		"another source":  {func(h *fi.Info) { h.Source = other.Name(5) }, "src_addr", nil},
		"several at once": {func(h *fi.Info) { h.Caps, h.Domain.CQDataSize = capCollective, 8 }, "caps collective: not offered", nil},
	} {
		h := fi.Info{Domain: fi.DomainInfo{Instance: d.Domain}}
		c.set(&h)
		list, err := fi.GetInfo(ctx(t), &h)
		list = ofOneType(&h, list)
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v, want %q", name, err, c.refused)
			}
			if malformed := name == "no peer"; errors.Is(err, fi.ErrNoInfo) == malformed || errors.Is(err, syscall.ENODATA) == malformed {
				t.Errorf("%s: %v: is ErrNoInfo: %t", name, err, !malformed)
			}
		case err != nil || len(list) != 1 || !c.holds(&list[0]) || list[0].Domain.Instance != d.Domain:
			t.Errorf("%s: %v, %v", name, err, list)
		}
	}
}

// Hints that name a domain which is closed are refused.
func TestHintsOfClosedDomain(t *testing.T) {
	d, other, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.CloseAll(), other.CloseAll()); err != nil {
		t.Fatal(err)
	}
	list, err := fi.GetInfo(ctx(t), &fi.Info{Domain: fi.DomainInfo{Instance: d.Domain}})
	if !errors.Is(err, fi.ErrClosed) || list != nil {
		t.Errorf("%v, %v: want ErrClosed", list, err)
	}
}

// Every bit and every value of the sets that hints are made of is met if it is offered,
// or cannot matter, and is otherwise refused by its name.
func TestEveryHint(t *testing.T) {
	d, other, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer d.CloseAll()
	defer other.CloseAll()
	try := func(met bool, name fmt.Stringer, h fi.Info) {
		t.Helper()
		h.Domain.Instance = d.Domain
		_, err := fi.GetInfo(ctx(t), &h)
		if (err == nil) != met || !met && (!errors.Is(err, fi.ErrNoInfo) || !strings.Contains(err.Error(), " "+name.String()+": ")) {
			t.Errorf("%v: %v, want it met: %t", name, err, met)
		}
	}
	for bit := range 64 { // of which libfabric names some; fields of 64 bits are refused by number
		c, o := fi.Caps(1)<<bit, fi.Order(1)<<bit
		try(c&allCaps != 0, c, fi.Info{Caps: c})
		if o == fi.OrderNone {
			continue
		}
		try(o&allOrders != 0, o, fi.Info{Transmit: fi.TransmitInfo{MsgOrder: o}})
		try(o&allOrders != 0, o, fi.Info{Receive: fi.ReceiveInfo{MsgOrder: o}})
	}
	for m := fi.MRBasic; m <= mrXPUDesc; m <<= 1 {
		try(m != fi.MRBasic, m, fi.Info{Domain: fi.DomainInfo{MRMode: m}}) // the domain is open without it
	}
	for e := fi.EndpointUnspec; e <= fi.EndpointRDM; e++ {
		try(e != endpointDgram, e, fi.Info{Endpoint: fi.EndpointInfo{Type: e}})
	}
	for c := fi.TrafficUnspec; c <= fi.TrafficNetworkControl; c++ {
		try(c == fi.TrafficUnspec, c, fi.Info{Domain: fi.DomainInfo{TrafficClass: c}}) // the domain is open without it
		try(true, c, fi.Info{Transmit: fi.TransmitInfo{TrafficClass: c}})
	}
	for m := fi.ThreadUnspec; m <= fi.ThreadEndpoint; m++ {
		try(true, m, fi.Info{Domain: fi.DomainInfo{Threading: m}})
	}
	for r := fi.RMUnspec; r <= fi.RMEnabled; r++ {
		try(true, r, fi.Info{Domain: fi.DomainInfo{ResourceMgmt: r}})
	}
	for v := fi.AVUnspec; v <= fi.AVTable; v++ {
		try(true, v, fi.Info{Domain: fi.DomainInfo{AVType: v}})
	}
}

// Capabilities that will not be offered are refused with the reason.
func TestRefusedCaps(t *testing.T) {
	d, other, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer d.CloseAll()
	defer other.CloseAll()
	for c, why := range map[fi.Caps]string{
		capMulticast: "post to each peer", capCollective: "atomics and messages", capVariableMsg: "peek and claim",
		capHMEM: "CPU of the host", capRMAPmem: "durable",
	} {
		_, err := fi.GetInfo(ctx(t), &fi.Info{Caps: c | fi.CapAtomic, Domain: fi.DomainInfo{Instance: d.Domain}})
		if !errors.Is(err, fi.ErrNoInfo) || !strings.Contains(err.Error(), "; "+c.String()+": ") || !strings.Contains(err.Error(), why) {
			t.Errorf("%v: %v, want it refused since %q", c, err, why)
		}
	}
}

// What applications that use libfabric ask for today is met as far as it is about
// atomics, and what is not offered yet is refused by its name.
func TestHintsOfApplications(t *testing.T) {
	d, other, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer d.CloseAll()
	defer other.CloseAll()
	optionalMR := fi.MRVirtAddr | fi.MRAllocated | fi.MRProvKey | mrEndpoint
	for name, c := range map[string]struct {
		hints  fi.Info
		beyond fi.Caps // that it asks for as well
		needs  string  // the error for these
	}{
		"Open MPI": {fi.Info{
			Caps:     fi.CapAtomic,
			Endpoint: fi.EndpointInfo{Type: fi.EndpointRDM}, Transmit: fi.TransmitInfo{OpFlags: fi.FlagDeliveryComplete | fi.FlagCompletion},
			Domain: fi.DomainInfo{MRMode: optionalMR, Threading: fi.ThreadSafe, AVType: fi.AVMap},
			Fabric: fi.FabricInfo{API: fi.MakeVersion(1, 18)},
		}, fi.CapRMA | fi.CapMsg, ""},
		"SOS": {fi.Info{
			Caps:     fi.CapAtomic | fi.CapFence | fi.CapRMAEvent,
			Endpoint: fi.EndpointInfo{Type: fi.EndpointRDM},
			Transmit: fi.TransmitInfo{OpFlags: fi.FlagDeliveryComplete, InjectSize: 16},
			Domain:   fi.DomainInfo{ResourceMgmt: fi.RMEnabled, Progress: fi.ProgressAuto, Threading: fi.ThreadDomain},
			Fabric:   fi.FabricInfo{API: fi.MakeVersion(1, 5)},
		}, fi.CapRMA, ""},
		"MPICH": {fi.Info{
			Caps:     fi.CapAtomic,
			Endpoint: fi.EndpointInfo{Type: fi.EndpointRDM},
			Transmit: fi.TransmitInfo{OpFlags: fi.FlagDeliveryComplete, MsgOrder: allAtomicOrders | fi.OrderRAR | fi.OrderRAW | fi.OrderWAR | fi.OrderWAW},
			Domain: fi.DomainInfo{ResourceMgmt: fi.RMEnabled, Progress: fi.ProgressManual, ControlProgress: fi.ProgressManual,
				Threading: fi.ThreadCompletion, AVType: fi.AVTable, MRMode: optionalMR},
		}, fi.CapRMA | fi.CapTagged | fi.CapMsg | fi.CapMultiRecv | fi.CapDirectedRecv, ""},
		"fabtests": {fi.Info{
			Caps:     fi.CapAtomic,
			Endpoint: fi.EndpointInfo{Type: fi.EndpointRDM, MaxMsgSize: 1024},
			Domain:   fi.DomainInfo{Threading: fi.ThreadDomain, MRMode: optionalMR | mrLocal | mrRaw},
			Fabric:   fi.FabricInfo{API: fi.MakeVersion(1, 21)},
		}, fi.CapMsg | capCollective, "collective"},
	} {
		c.hints.Domain.Instance = d.Domain
		if list, err := fi.GetInfo(ctx(t), &c.hints); err != nil || list[0].Domain.MRMode != 0 {
			t.Errorf("%s: %v, %v", name, err, list)
		}
		c.hints.Caps |= c.beyond
		_, err := fi.GetInfo(ctx(t), &c.hints)
		if c.needs == "" {
			if err != nil {
				t.Errorf("%s with %v: %v", name, c.beyond, err)
			}
		} else if !errors.Is(err, fi.ErrNoInfo) || !strings.Contains(err.Error(), "caps "+c.needs+": not offered") {
			t.Errorf("%s: %v, want one that says that %s is not offered", name, err, c.needs)
		}
	}
}

// Without hints, what MPICH decides by is there: it uses atomics of the provider only if
// all orders of them are promised, for the size of the operation.
func TestInfoWithoutHints(t *testing.T) {
	d, other, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer d.CloseAll()
	defer other.CloseAll()
	i := d.Info()
	sizes := i.Endpoint.AtomicOrder
	native := i.Caps&fi.CapAtomic != 0 && i.Transmit.MsgOrder&allAtomicOrders == allAtomicOrders &&
		sizes.RAW.Allows(1<<40) && sizes.WAR.Allows(1<<40) && sizes.WAW.Allows(1<<40)
	if !native {
		t.Errorf("atomics are not advertised: %v", &i)
	}
	if want := primaryCaps | initiatingCaps | targetCaps | fi.CapMultiRecv | fi.CapTrigger | fi.CapRMAEvent | fi.CapSource | fi.CapFence | fi.CapSharedAV | fi.CapLocalComm | fi.CapRemoteComm; i.Caps != want {
		t.Errorf("capabilities %v, want %v", i.Caps, want)
	}
	if v := i.Fabric.ProviderVersion.String(); !strings.HasPrefix(version.Version, v+".") {
		t.Errorf("provider version %s, want that of %s", v, version.Version)
	}
	if o := i.Domain; o.Threading != fi.ThreadSafe || o.ResourceMgmt != fi.RMEnabled || o.AVType != fi.AVTable || o.MRMode != 0 ||
		o.Progress != fi.ProgressAuto || o.ControlProgress != fi.ProgressAuto {
		t.Errorf("not the models that serve everybody: %v", &i)
	}
	if i.Endpoint.RMAOrder != sizes || i.Transmit.MsgOrder != allOrders {
		t.Errorf("remote reads and writes are not advertised as atomics are: %v", &i)
	}
	if r := i.Receive; r.Size != 1024 || r.TotalBufferedRcv != 4<<20 || r.IOVLimit != fi.MaxPieces || r.OpFlags != 0 || r.MsgOrder != allOrders {
		t.Errorf("receives are not advertised as they are by default: %v", &i)
	}
}

// What an endpoint's info says is what the endpoint does.
func TestInfoIsInForce(t *testing.T) {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer a.CloseAll()
	defer b.CloseAll()
	list, err := fi.GetInfo(ctx(t), &fi.Info{
		Caps: fi.CapAtomic | fi.CapRMA | fi.CapMsg | fi.CapTagged | fi.CapWrite, Transmit: fi.TransmitInfo{Size: 4}, Domain: fi.DomainInfo{Instance: a.Domain}})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := a.NewEndpoint(list[0].EndpointAttr())
	if err != nil {
		t.Fatal(err)
	}
	if got := ep.Info(); got.Caps != list[0].Caps || got.Transmit != list[0].Transmit || got.Receive != list[0].Receive || got.Source != ep.Name() {
		t.Errorf("in force:\n%v\nwant\n%v", &got, &list[0])
	}
	for buffered, limit := range map[int]fi.Limit{-1: 0, 0: 4 << 20, 100: 100} {
		listening, err := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, BufferedReceive: buffered, ReceiveSize: 5, ReceiveFlags: fi.FlagMultiRecv})
		if err != nil {
			t.Fatal(err)
		}
		info := listening.Info()
		again := info.EndpointAttr()
		if attr := listening.Attr(); info.Receive.TotalBufferedRcv != limit || again.BufferedReceive != attr.BufferedReceive || again.ReceiveSize != 8 || again.ReceiveFlags != attr.ReceiveFlags {
			t.Errorf("buffered receives of %d: %+v, %+v", buffered, info.Receive, again)
		}
	}
	inject := int(list[0].Transmit.InjectSize)
	if _, err := a.NewEndpoint(fi.EndpointAttr{Number: 7, InjectSize: inject + 1}); !errors.Is(err, fi.ErrTooBig) {
		t.Error(err)
	}
	if _, err := a.NewEndpoint(fi.EndpointAttr{Number: int(list[0].Domain.Endpoints)}); err == nil {
		t.Error("there is an endpoint beyond ep_cnt")
	}
	if info := a.Info(); info.Domain.Instance != a.Domain || info.Domain.Name != a.Interface().Name || info.Source != a.Name(0) {
		t.Errorf("%v", &info)
	}
}

// Endpoints of one domain reach each other (FI_LOCAL_COMM).
func TestLocalCommunication(t *testing.T) {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer a.CloseAll()
	defer b.CloseAll()
	addToOwnWord(t, a)
}

// addToOwnWord dials a domain from itself.
func addToOwnWord(t *testing.T, d *xdpfab.Domain) {
	t.Helper()
	if _, err := d.NewRegion("own", 64); err != nil {
		t.Fatal(err)
	}
	ep, err := d.NewEndpoint(fi.EndpointAttr{})
	if err != nil || ep.Enable() != nil {
		t.Fatal(err)
	}
	p, err := d.Dial(ctx(t), d.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx(t), p, "own", 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Add(ctx(t), 5); n != 5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// A domain with a mode of memory registration treats all regions alike.
func TestMRMode(t *testing.T) {
	a, b, err := xdpfab.Pipe(fi.DomainAttr{}, fi.DomainAttr{MRMode: fi.MRVirtAddr | fi.MRAllocated | fi.MRProvKey})
	if err != nil {
		t.Fatal(err)
	}
	defer a.CloseAll()
	defer b.CloseAll()
	m := mustAlloc(t)
	key := uint64(7)
	chosen, err := b.Register(m, mr.Options{Key: &key, Access: mr.RemoteRead})
	if err != nil || chosen.Key() == key {
		t.Errorf("a requested key: %v, %v: want another one, chosen by the domain", chosen, err)
	}
	r, err := b.Register(m, mr.Options{Access: mr.RemoteRead})
	if err != nil || r.Base() == 0 {
		t.Errorf("base %#x, %v: want a virtual address", r.Base(), err)
	}
	if mode := b.Info().Domain.MRMode; mode&fi.MRVirtAddr == 0 {
		t.Errorf("mode %v", mode)
	}
	for mode := fi.MRBasic; mode <= mrXPUDesc; mode <<= 1 {
		if mode&(fi.MRVirtAddr|fi.MRAllocated|fi.MRProvKey) != 0 {
			continue
		}
		if _, err := fi.NewFabric(fi.DomainAttr{MRMode: mode}); !errors.Is(err, fi.ErrNotImplemented) {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

// A clone shares no memory with its original (fi_dupinfo).
func TestInfoClone(t *testing.T) {
	i := &fi.Info{Missing: []string{"a"}, Domain: fi.DomainInfo{AuthKey: []byte{1}}, Endpoint: fi.EndpointInfo{AuthKey: []byte{2}}}
	c := i.Clone()
	if !reflect.DeepEqual(i, c) {
		t.Errorf("%v, want %v", c, i)
	}
	c.Missing[0], c.Domain.AuthKey[0], c.Endpoint.AuthKey[0] = "b", 9, 9
	if i.Missing[0] != "a" || i.Domain.AuthKey[0] != 1 || i.Endpoint.AuthKey[0] != 2 {
		t.Errorf("changed with its clone: %v", i)
	}
}

// An info has a text and a JSON form with the names of libfabric's fields (fi_tostr).
func TestInfoTexts(t *testing.T) {
	d, other, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer d.CloseAll()
	defer other.CloseAll()
	i, format := d.Info(), `"addr_format":"ethernet"`
	if fi.OverSockets {
		format = `"addr_format":"ipv4"`
	}
	j, err := json.Marshal(&i)
	if err != nil {
		t.Fatal(err)
	}
	text := i.String()
	for _, want := range []string{"    caps: msg|rma|tagged|atomic|read|write|recv|send|", "    ep_attr:\n        type: rdm\n        protocol: xdpfab", "cq_cnt: unlimited", "api_version: 2.6", "        max_order_atomic:\n            raw: unlimited"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, want := range []string{`"msg_order":"rar|raw|ras|war|waw|was|sar|saw|sas|rma_rar|`, `"threading":"safe"`, `"av_type":"table"`, format, `"cq_cnt":-1`, `"op_flags":"delivery_complete"`} {
		if !strings.Contains(string(j), want) {
			t.Errorf("no %q in\n%s", want, j)
		}
	}
	for value, want := range map[fmt.Stringer]string{
		fi.MRBasic | mrXPUDesc:          "basic|xpu_desc",
		fi.OrderRAR | fi.OrderAtomicWAW: "rar|atomic_waw", fi.CapMsg | fi.CapRemoteComm: "msg|remote_comm",
		fi.TrafficNetworkControl: "network_ctrl", fi.EndpointType(9): "EndpointType(9)", fi.ThreadEndpoint: "endpoint",
		fi.RMEnabled: "enabled", fi.AVMap: "map", fi.AddrIPv6: "ipv6", fi.Unlimited: "unlimited", fi.Limit(5): "5",
		capXPU | fi.CapRead: "read|xpu", fi.CapSourceErr | capRMAPmem: "rma_pmem|source_err", capPeer | 1<<7 | 1<<63: "peer|0x8000000000000080",
	} {
		if value.String() != want {
			t.Errorf("%v, want %s", value, want)
		}
	}
}
