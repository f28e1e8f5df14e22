// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

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
)

const (
	allAtomicOrders = xdpfab.OrderAtomicRAR | xdpfab.OrderAtomicRAW | xdpfab.OrderAtomicWAR | xdpfab.OrderAtomicWAW
	allRMAOrders    = xdpfab.OrderRMARAR | xdpfab.OrderRMARAW | xdpfab.OrderRMAWAR | xdpfab.OrderRMAWAW
	messageOrders   = xdpfab.OrderRAS | xdpfab.OrderWAS | xdpfab.OrderSAR | xdpfab.OrderSAW | xdpfab.OrderSAS
	allOrders       = allAtomicOrders | allRMAOrders | xdpfab.OrderRAR | xdpfab.OrderRAW | xdpfab.OrderWAR | xdpfab.OrderWAW | messageOrders
	initiatingCaps  = xdpfab.CapRead | xdpfab.CapWrite | xdpfab.CapSend
	targetCaps      = xdpfab.CapRemoteRead | xdpfab.CapRemoteWrite | xdpfab.CapRecv
)

// ofOneType returns the infos of reliable datagram endpoints, if the hints do not ask for
// a type. Those of connected endpoints, which are like them, must follow.
func ofOneType(h *xdpfab.Info, list []xdpfab.Info) []xdpfab.Info {
	if h != nil && h.Endpoint.Type != xdpfab.EndpointUnspec {
		return list
	}
	n := 0
	for n < len(list) && list[n].Endpoint.Type == xdpfab.EndpointRDM {
		n++
	}
	for _, i := range list[n:] {
		if i.Endpoint.Type != xdpfab.EndpointMsg {
			return list // out of order, so the caller finds too many
		}
	}
	return list[:n]
}

// Each hint is met or refused by name, and what it asks for is in the result.
func TestHints(t *testing.T) {
	xdpfab.NotOverSockets(t, "it names peers by Ethernet addresses")
	d, other, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer d.CloseAll()
	defer other.CloseAll()
	type hint = func(*xdpfab.Info)
	type check = func(*xdpfab.Info) bool
	met := func(*xdpfab.Info) bool { return true }
	for name, c := range map[string]struct {
		set     hint
		refused string // what the error says; empty if the hint is met
		holds   check
	}{
		"nothing":   {func(h *xdpfab.Info) {}, "", met},
		"atomics":   {func(h *xdpfab.Info) { h.Caps = xdpfab.CapAtomic }, "", func(i *xdpfab.Info) bool { return i.Caps&(initiatingCaps|targetCaps) == initiatingCaps|targetCaps }},
		"initiator": {func(h *xdpfab.Info) { h.Caps = xdpfab.CapAtomic | xdpfab.CapRead }, "", func(i *xdpfab.Info) bool { return i.Caps&targetCaps == 0 && i.EndpointAttr().InitiateOnly }},
		"target":    {func(h *xdpfab.Info) { h.Caps = xdpfab.CapAtomic | xdpfab.CapRemoteWrite }, "", func(i *xdpfab.Info) bool { return i.Receive.Caps&targetCaps == targetCaps }},
		"fence":     {func(h *xdpfab.Info) { h.Caps = xdpfab.CapAtomic | xdpfab.CapFence }, "", func(i *xdpfab.Info) bool { return i.Transmit.Caps&xdpfab.CapFence != 0 }},
		"messages": {func(h *xdpfab.Info) { h.Caps = xdpfab.CapMsg | xdpfab.CapTagged | xdpfab.CapDirectedRecv }, "", func(i *xdpfab.Info) bool {
			return i.Caps&(xdpfab.PrimaryCaps&^(xdpfab.CapNamedRX|xdpfab.CapAVUserID)) == xdpfab.CapMsg|xdpfab.CapTagged|xdpfab.CapDirectedRecv && i.Receive.Caps&xdpfab.CapMultiRecv != 0
		}},
		"sender": {func(h *xdpfab.Info) { h.Caps = xdpfab.CapMsg | xdpfab.CapSend }, "", func(i *xdpfab.Info) bool {
			return i.EndpointAttr().InitiateOnly && i.Caps&(xdpfab.CapRecv|xdpfab.CapMultiRecv) == 0
		}},
		"receiver":                          {func(h *xdpfab.Info) { h.Caps = xdpfab.CapMsg | xdpfab.CapRecv }, "", func(i *xdpfab.Info) bool { return !i.EndpointAttr().InitiateOnly }},
		"directed receives of a connection": {func(h *xdpfab.Info) { h.Endpoint.Type, h.Caps = xdpfab.EndpointMsg, xdpfab.CapDirectedRecv }, "caps directed_recv: not offered", nil},
		"default flags of receives": {func(h *xdpfab.Info) { h.Receive.OpFlags = xdpfab.FlagMultiRecv }, "", func(i *xdpfab.Info) bool {
			return i.EndpointAttr().ReceiveFlags == xdpfab.FlagMultiRecv
		}},
		"peeks always": {func(h *xdpfab.Info) { h.Receive.OpFlags = xdpfab.FlagPeek }, "rx_attr.op_flags peek: not for all operations", nil},
		"memory for messages": {func(h *xdpfab.Info) { h.Receive.TotalBufferedRcv = 1 << 25 }, "", func(i *xdpfab.Info) bool {
			return i.EndpointAttr().BufferedReceive == 1<<25
		}},
		"much memory":          {func(h *xdpfab.Info) { h.Receive.TotalBufferedRcv = 1 << 31 }, "rx_attr.total_buffered_recv 2147483648: want at most 1073741824", nil},
		"pieces of receives":   {func(h *xdpfab.Info) { h.Receive.IOVLimit = 1024 }, "", met},
		"more pieces":          {func(h *xdpfab.Info) { h.Receive.IOVLimit = 1025 }, "rx_attr.iov_limit 1025: want at most 1024", nil},
		"fields of tags":       {func(h *xdpfab.Info) { h.Endpoint.MemTagFormat = 0xffff_0000_ffff_0000 }, "", func(i *xdpfab.Info) bool { return i.Endpoint.MemTagFormat == 0xffff_0000_ffff_0000 }},
		"any fields of tags":   {func(h *xdpfab.Info) {}, "", func(i *xdpfab.Info) bool { return i.Endpoint.MemTagFormat == xdpfab.TagGeneric }},
		"unexpected variables": {func(h *xdpfab.Info) { h.Caps = xdpfab.CapVariableMsg | xdpfab.CapMsg }, "caps variable_msg: not offered", nil},
		"rma": {func(h *xdpfab.Info) { h.Caps, h.Transmit.Caps = xdpfab.CapRMA, xdpfab.CapRMA }, "", func(i *xdpfab.Info) bool {
			return i.Caps&xdpfab.PrimaryCaps == xdpfab.CapRMA|xdpfab.CapNamedRX|xdpfab.CapAVUserID && i.Transmit.Caps&xdpfab.CapRMA != 0
		}},
		"tagged":      {func(h *xdpfab.Info) { h.Transmit.Caps = xdpfab.CapRMA | xdpfab.CapTagged }, "", met},
		"domain caps": {func(h *xdpfab.Info) { h.Domain.Caps = xdpfab.CapCollective | xdpfab.CapLocalComm }, "domain_attr.caps collective: not offered", nil},
		"user IDs": {func(h *xdpfab.Info) { h.Domain.Caps, h.Caps = xdpfab.CapAVUserID, xdpfab.CapAVUserID|xdpfab.CapAtomic }, "", func(i *xdpfab.Info) bool {
			return i.Domain.Caps&xdpfab.CapAVUserID != 0 && i.Caps&(xdpfab.CapAVUserID|xdpfab.CapAtomic) == xdpfab.CapAVUserID|xdpfab.CapAtomic
		}},
		"shared vectors": {func(h *xdpfab.Info) { h.Domain.Caps, h.Caps = xdpfab.CapSharedAV, xdpfab.CapSharedAV|xdpfab.CapAtomic }, "", func(i *xdpfab.Info) bool {
			return i.Domain.Caps&xdpfab.CapSharedAV != 0 && i.Caps&xdpfab.CapSharedAV != 0
		}},
		"modes":          {func(h *xdpfab.Info) { h.Mode = xdpfab.ModeContext | xdpfab.ModeContext2 }, "", func(i *xdpfab.Info) bool { return i.Mode == 0 }},
		"rdm":            {func(h *xdpfab.Info) { h.Endpoint.Type = xdpfab.EndpointRDM }, "", met},
		"connected":      {func(h *xdpfab.Info) { h.Endpoint.Type = xdpfab.EndpointMsg }, "", func(i *xdpfab.Info) bool { return i.EndpointAttr().Type == xdpfab.EndpointMsg }},
		"unreliable":     {func(h *xdpfab.Info) { h.Endpoint.Type = xdpfab.EndpointDgram }, "ep_attr.type dgram: want rdm", nil},
		"named contexts": {func(h *xdpfab.Info) { h.Endpoint.Type, h.Caps = xdpfab.EndpointMsg, xdpfab.CapNamedRX }, "caps named_rx_ctx: not offered", nil},
		"protocol":       {func(h *xdpfab.Info) { h.Endpoint.Protocol = 7 }, "ep_attr.protocol Protocol(0x7): want xdpfab", nil},
		"later protocol": {func(h *xdpfab.Info) { h.Endpoint.ProtocolVersion = 99 }, "protocol_version 99: want at most", nil},
		"big messages":   {func(h *xdpfab.Info) { h.Endpoint.MaxMsgSize = 1 << 20 }, "", func(i *xdpfab.Info) bool { return i.Endpoint.MaxMsgSize == math.MaxUint32 }},
		"any message":    {func(h *xdpfab.Info) { h.Endpoint.MaxMsgSize = xdpfab.Unlimited }, "max_msg_size unlimited: want at most", nil},
		"atomic order": {func(h *xdpfab.Info) { h.Transmit.MsgOrder = allAtomicOrders }, "", func(i *xdpfab.Info) bool {
			return i.Transmit.MsgOrder == allOrders && i.Receive.MsgOrder == allOrders
		}},
		"no order": {func(h *xdpfab.Info) { h.Transmit.MsgOrder = xdpfab.OrderNone }, "", func(i *xdpfab.Info) bool {
			return i.Transmit.MsgOrder == xdpfab.OrderNone && i.Endpoint.AtomicOrder == xdpfab.OrderSizes{} && i.Endpoint.RMAOrder == xdpfab.OrderSizes{} && i.EndpointAttr().MsgOrder == xdpfab.OrderNone
		}},
		"no order of a size": {func(h *xdpfab.Info) { h.Transmit.MsgOrder, h.Endpoint.AtomicOrder.WAW = xdpfab.OrderNone, 8 }, "max_order_atomic.waw 8: want at most 0", nil},
		"none and some":      {func(h *xdpfab.Info) { h.Transmit.MsgOrder = xdpfab.OrderNone | xdpfab.OrderAtomicWAW }, "tx_attr.msg_order none: not promised", nil},
		"order of sends":     {func(h *xdpfab.Info) { h.Transmit.MsgOrder = xdpfab.OrderSAS | xdpfab.OrderAtomicRAR }, "", func(i *xdpfab.Info) bool { return i.Transmit.MsgOrder == allOrders }},
		"combined order":     {func(h *xdpfab.Info) { h.Receive.MsgOrder = xdpfab.OrderWAW }, "", met},
		"sends and writes":   {func(h *xdpfab.Info) { h.Receive.MsgOrder = xdpfab.OrderSAW | xdpfab.OrderWAW }, "", met},
		"completions":        {func(h *xdpfab.Info) { h.Transmit.CompletionOrder = xdpfab.OrderRAR }, "comp_order rar: not promised", nil},
		"size of order":      {func(h *xdpfab.Info) { h.Endpoint.AtomicOrder.WAW = 1 << 30 }, "", func(i *xdpfab.Info) bool { return i.Endpoint.AtomicOrder.WAW == xdpfab.Unlimited }},
		"RMA order":          {func(h *xdpfab.Info) { h.Endpoint.RMAOrder.RAW = 1 << 40 }, "", func(i *xdpfab.Info) bool { return i.Endpoint.RMAOrder.RAW == xdpfab.Unlimited }},
		"no RMA order":       {func(h *xdpfab.Info) { h.Transmit.MsgOrder, h.Endpoint.RMAOrder.RAW = xdpfab.OrderNone, 1 }, "max_order_rma.raw 1: want at most 0", nil},
		"inject":             {func(h *xdpfab.Info) { h.Transmit.InjectSize = 16 }, "", func(i *xdpfab.Info) bool { return i.Transmit.InjectSize >= 16 }},
		"big inject":         {func(h *xdpfab.Info) { h.Transmit.InjectSize = 1 << 20 }, "tx_attr.inject_size 1048576: want at most", nil},
		"queue":              {func(h *xdpfab.Info) { h.Transmit.Size = 3000 }, "", func(i *xdpfab.Info) bool { return i.Transmit.Size == 4096 && i.EndpointAttr().Size == 4096 }},
		"long queue":         {func(h *xdpfab.Info) { h.Transmit.Size = 1 << 30 }, "tx_attr.size 1073741824: want at most 1048576", nil},
		"negative":           {func(h *xdpfab.Info) { h.Transmit.Size = -7 }, "tx_attr.size -7: want at most", nil},
		"receives":           {func(h *xdpfab.Info) { h.Receive.Size = 3000 }, "", func(i *xdpfab.Info) bool { return i.Receive.Size == 4096 && i.EndpointAttr().ReceiveSize == 4096 }},
		"many receives":      {func(h *xdpfab.Info) { h.Receive.Size = 1 << 30 }, "rx_attr.size 1073741824: want at most 1048576", nil},
		"extents":            {func(h *xdpfab.Info) { h.Transmit.RMAIOVLimit = 1000 }, "", met},
		"delivery":           {func(h *xdpfab.Info) { h.Transmit.OpFlags = xdpfab.FlagDeliveryComplete }, "", met},
		"fence always":       {func(h *xdpfab.Info) { h.Transmit.OpFlags = xdpfab.FlagFence }, "op_flags fence: not for all operations", nil},
		"traffic class": {func(h *xdpfab.Info) { h.Transmit.TrafficClass = xdpfab.TrafficLowLatency }, "", func(i *xdpfab.Info) bool {
			return i.Transmit.TrafficClass == xdpfab.TrafficLowLatency && i.EndpointAttr().TrafficClass == xdpfab.TrafficLowLatency
		}},
		"codepoint":      {func(h *xdpfab.Info) { h.Transmit.TrafficClass = xdpfab.TrafficDSCP(11) }, "", func(i *xdpfab.Info) bool { return i.Transmit.TrafficClass.DSCP() == 11 }},
		"no such class":  {func(h *xdpfab.Info) { h.Transmit.TrafficClass = xdpfab.TrafficDSCP(64) }, "tx_attr.tclass dscp(64): want unspec", nil},
		"domain's class": {func(h *xdpfab.Info) { h.Domain.TrafficClass = xdpfab.TrafficBulkData }, "domain_attr.tclass bulk_data: want unspec, with which the domain is open", nil},
		"safe":           {func(h *xdpfab.Info) { h.Domain.Threading = xdpfab.ThreadSafe }, "", met},
		"threads":        {func(h *xdpfab.Info) { h.Domain.Threading = xdpfab.ThreadCompletion }, "", func(i *xdpfab.Info) bool { return i.Domain.Threading == xdpfab.ThreadSafe }},
		"manual":         {func(h *xdpfab.Info) { h.Domain.Progress = xdpfab.ProgressManual }, "", func(i *xdpfab.Info) bool { return i.Domain.Progress == xdpfab.ProgressAuto }},
		"manual control": {func(h *xdpfab.Info) { h.Domain.ControlProgress = xdpfab.ProgressManual }, "", func(i *xdpfab.Info) bool { return i.Domain.ControlProgress == xdpfab.ProgressAuto }},
		"protection":     {func(h *xdpfab.Info) { h.Domain.ResourceMgmt = xdpfab.RMDisabled }, "", func(i *xdpfab.Info) bool { return i.Domain.ResourceMgmt == xdpfab.RMEnabled }},
		"address map":    {func(h *xdpfab.Info) { h.Domain.AVType = xdpfab.AVMap }, "", func(i *xdpfab.Info) bool { return i.Domain.AVType == xdpfab.AVTable }},
		"MR scalable":    {func(h *xdpfab.Info) { h.Domain.MRMode = xdpfab.MRScalable }, "", func(i *xdpfab.Info) bool { return i.Domain.MRMode == 0 }},
		"MR basic":       {func(h *xdpfab.Info) { h.Domain.MRMode = xdpfab.MRBasic }, "mr_mode basic: want none, with which the domain is open", nil},
		"MR bits":        {func(h *xdpfab.Info) { h.Domain.MRMode = xdpfab.MRLocal | xdpfab.MRRaw | xdpfab.MREndpoint }, "", func(i *xdpfab.Info) bool { return i.Domain.MRMode == 0 }},
		"MR basic and":   {func(h *xdpfab.Info) { h.Domain.MRMode = xdpfab.MRBasic | xdpfab.MRLocal }, "mr_mode basic|local: want basic or scalable alone", nil},
		"wide keys":      {func(h *xdpfab.Info) { h.Domain.MRKeySize = 16 }, "mr_key_size 16: want at most 8", nil},
		"remote data":    {func(h *xdpfab.Info) { h.Domain.CQDataSize = 16 }, "cq_data_size 16: want at most 8", nil},
		"many queues":    {func(h *xdpfab.Info) { h.Domain.CQs, h.Domain.Counters, h.Domain.MRs = 1e6, 1e6, 1e6 }, "", met},
		"endpoints":      {func(h *xdpfab.Info) { h.Domain.Endpoints = 1<<16 + 1 }, "ep_cnt 65537: want at most 65536", nil},
		"scalable": {func(h *xdpfab.Info) { h.Domain.MaxEPTX, h.Endpoint.TXContexts, h.Endpoint.RXContexts = 128, 4, 2 }, "", func(i *xdpfab.Info) bool {
			return i.ScalableAttr() == xdpfab.ScalableAttr{TXContexts: 4, RXContexts: 2} && i.Domain.MaxEPTX == 128 && i.Domain.MaxEPRX == 128
		}},
		"too scalable": {func(h *xdpfab.Info) { h.Domain.MaxEPTX = 129 }, "max_ep_tx_ctx 129: want at most 128", nil},
		"shared": {func(h *xdpfab.Info) { h.Domain.MaxEPSharedTX, h.Endpoint.TXContexts = 1<<16, xdpfab.SharedContext }, "",
			func(i *xdpfab.Info) bool { return i.Endpoint.TXContexts == xdpfab.SharedContext }},
		"shared receives": {func(h *xdpfab.Info) { h.Domain.MaxEPSharedRX, h.Endpoint.RXContexts = 1<<16, xdpfab.SharedContext }, "",
			func(i *xdpfab.Info) bool { return i.Endpoint.RXContexts == xdpfab.SharedContext }},
		"no such thread":  {func(h *xdpfab.Info) { h.Domain.Threading = 99 }, "threading Threading(99): want safe", nil},
		"no such table":   {func(h *xdpfab.Info) { h.Domain.AVType, h.Domain.ResourceMgmt = 99, 98 }, "av_type AVType(99): want table", nil},
		"no progress":     {func(h *xdpfab.Info) { h.Domain.Progress = 99 }, "progress ProgressMode(99): want auto", nil},
		"an empty key":    {func(h *xdpfab.Info) { h.Endpoint.AuthKey = []byte{} }, "", met},
		"receive side":    {func(h *xdpfab.Info) { h.Domain.MaxEPRX, h.Domain.MaxEPSharedRX = 1, 1<<16+1 }, "max_ep_srx_ctx 65537: want at most 65536", nil},
		"vectors of MR":   {func(h *xdpfab.Info) { h.Domain.MRIOVLimit = 2 }, "mr_iov_limit 2: want at most 1", nil},
		"data of errors":  {func(h *xdpfab.Info) { h.Domain.MaxErrData = 64 }, "max_err_data 64: want at most 0", nil},
		"keys":            {func(h *xdpfab.Info) { h.Domain.MaxEPAuthKeys = 1 }, "max_ep_auth_key 1: want at most 0", nil},
		"groups":          {func(h *xdpfab.Info) { h.Domain.MaxGroupID = 1 }, "max_group_id 1: want at most 0", nil},
		"devices":         {func(h *xdpfab.Info) { h.Domain.MaxXPUContexts = 1 }, "max_xpu_ctx_cnt 1: want at most 0", nil},
		"authorization":   {func(h *xdpfab.Info) { h.Domain.AuthKey = []byte{1, 2} }, "domain_attr.auth_key of 2 bytes: the domain is open with another one, or none", nil},
		"endpoint's key":  {func(h *xdpfab.Info) { h.Endpoint.AuthKey = []byte{1, 2} }, "", func(i *xdpfab.Info) bool { return bytes.Equal(i.EndpointAttr().AuthKey, []byte{1, 2}) }},
		"long key":        {func(h *xdpfab.Info) { h.Endpoint.AuthKey = make([]byte, 65) }, "ep_attr.auth_key of 65 bytes: want at most 64", nil},
		"size of keys":    {func(h *xdpfab.Info) { h.Domain.AuthKeySize = 64 }, "", func(i *xdpfab.Info) bool { return i.Domain.AuthKeySize == 0 }},
		"key by AV":       {func(h *xdpfab.Info) { h.Domain.AuthKeySize = xdpfab.Unlimited }, "auth_key_size unlimited: want at most 64", nil},
		"big counters":    {func(h *xdpfab.Info) { h.Domain.MaxCounter = math.MaxUint64 }, "", met},
		"name":            {func(h *xdpfab.Info) { h.Domain.Name = "pipe" }, "", met},
		"another name":    {func(h *xdpfab.Info) { h.Domain.Name = "eth7" }, `domain_attr.name eth7: want pipe`, nil},
		"driver":          {func(h *xdpfab.Info) { h.Interface.Driver = "ice" }, "nic.driver ice: want memory", nil},
		"provider":        {func(h *xdpfab.Info) { h.Fabric.Provider = "tcp" }, "prov_name tcp: want xdpfab", nil},
		"version":         {func(h *xdpfab.Info) { h.Fabric.API = xdpfab.MakeVersion(1, 5) }, "", func(i *xdpfab.Info) bool { return i.Fabric.API == xdpfab.APIVersion }},
		"later version":   {func(h *xdpfab.Info) { h.Fabric.API = xdpfab.MakeVersion(3, 0) }, "api_version 3.0: want at most 2.6", nil},
		"IP":              {func(h *xdpfab.Info) { h.AddrFormat = xdpfab.AddrIPv4 }, "addr_format ipv4: want ethernet", nil},
		"peer":            {func(h *xdpfab.Info) { h.Dest = other.Name(3) }, "", func(i *xdpfab.Info) bool { return i.Dest == other.Name(3) }},
		"peer by IP":      {func(h *xdpfab.Info) { h.Dest = "fd00::2" }, "addr_format ipv6: want ethernet", nil},
		"no peer":         {func(h *xdpfab.Info) { h.Dest = "no body" }, "nor is it the name of a host", nil},
		"mixed":           {func(h *xdpfab.Info) { h.AddrFormat, h.Dest = xdpfab.AddrIPv4, "fd00::2" }, "format ipv6: want ipv4", nil},
		"source":          {func(h *xdpfab.Info) { h.Source = d.Name(5) }, "", func(i *xdpfab.Info) bool { return i.Source == d.Name(5) && i.EndpointAttr().Number == 5 }},
		"another source":  {func(h *xdpfab.Info) { h.Source = other.Name(5) }, "src_addr", nil},
		"several at once": {func(h *xdpfab.Info) { h.Caps, h.Domain.CQDataSize = xdpfab.CapCollective, 8 }, "caps collective: not offered", nil},
	} {
		h := xdpfab.Info{Domain: xdpfab.DomainInfo{Instance: d}}
		c.set(&h)
		list, err := xdpfab.GetInfo(ctx(t), &h)
		list = ofOneType(&h, list)
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v, want %q", name, err, c.refused)
			}
			if malformed := name == "no peer"; errors.Is(err, xdpfab.ErrNoInfo) == malformed || errors.Is(err, syscall.ENODATA) == malformed {
				t.Errorf("%s: %v: is ErrNoInfo: %t", name, err, !malformed)
			}
		case err != nil || len(list) != 1 || !c.holds(&list[0]) || list[0].Domain.Instance != d:
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
	list, err := xdpfab.GetInfo(ctx(t), &xdpfab.Info{Domain: xdpfab.DomainInfo{Instance: d}})
	if !errors.Is(err, xdpfab.ErrClosed) || list != nil {
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
	try := func(met bool, name fmt.Stringer, h xdpfab.Info) {
		t.Helper()
		h.Domain.Instance = d
		_, err := xdpfab.GetInfo(ctx(t), &h)
		if (err == nil) != met || !met && (!errors.Is(err, xdpfab.ErrNoInfo) || !strings.Contains(err.Error(), " "+name.String()+": ")) {
			t.Errorf("%v: %v, want it met: %t", name, err, met)
		}
	}
	for c := xdpfab.CapMsg; c <= xdpfab.CapRemoteComm; c <<= 1 {
		try(c&allCaps != 0, c, xdpfab.Info{Caps: c})
	}
	for o := xdpfab.OrderRAR; o <= xdpfab.OrderAtomicWAW; o <<= 1 {
		try(o&allOrders != 0, o, xdpfab.Info{Transmit: xdpfab.TransmitInfo{MsgOrder: o}})
		try(o&allOrders != 0, o, xdpfab.Info{Receive: xdpfab.ReceiveInfo{MsgOrder: o}})
	}
	for m := xdpfab.ModeContext; m <= xdpfab.ModeBufferedRecv; m <<= 1 {
		try(true, m, xdpfab.Info{Mode: m, Domain: xdpfab.DomainInfo{Mode: m}})
	}
	for m := xdpfab.MRBasic; m <= xdpfab.MRXPUDesc; m <<= 1 {
		try(m != xdpfab.MRBasic, m, xdpfab.Info{Domain: xdpfab.DomainInfo{MRMode: m}}) // the domain is open without it
	}
	for e := xdpfab.EndpointUnspec; e <= xdpfab.EndpointRDM; e++ {
		try(e != xdpfab.EndpointDgram, e, xdpfab.Info{Endpoint: xdpfab.EndpointInfo{Type: e}})
	}
	for c := xdpfab.TrafficUnspec; c <= xdpfab.TrafficNetworkControl; c++ {
		try(c == xdpfab.TrafficUnspec, c, xdpfab.Info{Domain: xdpfab.DomainInfo{TrafficClass: c}}) // the domain is open without it
		try(true, c, xdpfab.Info{Transmit: xdpfab.TransmitInfo{TrafficClass: c}})
	}
	for m := xdpfab.ThreadUnspec; m <= xdpfab.ThreadEndpoint; m++ {
		try(true, m, xdpfab.Info{Domain: xdpfab.DomainInfo{Threading: m}})
	}
	for r := xdpfab.RMUnspec; r <= xdpfab.RMEnabled; r++ {
		try(true, r, xdpfab.Info{Domain: xdpfab.DomainInfo{ResourceMgmt: r}})
	}
	for v := xdpfab.AVUnspec; v <= xdpfab.AVTable; v++ {
		try(true, v, xdpfab.Info{Domain: xdpfab.DomainInfo{AVType: v}})
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
	for c, why := range map[xdpfab.Caps]string{
		xdpfab.CapMulticast: "post to each peer", xdpfab.CapCollective: "atomics and messages", xdpfab.CapVariableMsg: "peek and claim",
		xdpfab.CapHMEM: "CPU of the host", xdpfab.CapRMAPmem: "durable",
	} {
		_, err := xdpfab.GetInfo(ctx(t), &xdpfab.Info{Caps: c | xdpfab.CapAtomic, Domain: xdpfab.DomainInfo{Instance: d}})
		if !errors.Is(err, xdpfab.ErrNoInfo) || !strings.Contains(err.Error(), "; "+c.String()+": ") || !strings.Contains(err.Error(), why) {
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
	optionalMR := xdpfab.MRVirtAddr | xdpfab.MRAllocated | xdpfab.MRProvKey | xdpfab.MREndpoint
	for name, c := range map[string]struct {
		hints  xdpfab.Info
		beyond xdpfab.Caps // that it asks for as well
		needs  string      // the error for these
	}{
		"Open MPI": {xdpfab.Info{
			Caps:     xdpfab.CapAtomic,
			Endpoint: xdpfab.EndpointInfo{Type: xdpfab.EndpointRDM}, Transmit: xdpfab.TransmitInfo{OpFlags: xdpfab.FlagDeliveryComplete | xdpfab.FlagCompletion},
			Domain: xdpfab.DomainInfo{MRMode: optionalMR, Threading: xdpfab.ThreadSafe, AVType: xdpfab.AVMap},
			Fabric: xdpfab.FabricInfo{API: xdpfab.MakeVersion(1, 18)},
		}, xdpfab.CapRMA | xdpfab.CapMsg, ""},
		"SOS": {xdpfab.Info{
			Caps:     xdpfab.CapAtomic | xdpfab.CapFence | xdpfab.CapRMAEvent,
			Endpoint: xdpfab.EndpointInfo{Type: xdpfab.EndpointRDM},
			Transmit: xdpfab.TransmitInfo{OpFlags: xdpfab.FlagDeliveryComplete, InjectSize: 16},
			Domain:   xdpfab.DomainInfo{ResourceMgmt: xdpfab.RMEnabled, Progress: xdpfab.ProgressAuto, Threading: xdpfab.ThreadDomain},
			Fabric:   xdpfab.FabricInfo{API: xdpfab.MakeVersion(1, 5)},
		}, xdpfab.CapRMA, ""},
		"MPICH": {xdpfab.Info{
			Caps: xdpfab.CapAtomic, Mode: xdpfab.ModeContext | xdpfab.ModeContext2,
			Endpoint: xdpfab.EndpointInfo{Type: xdpfab.EndpointRDM},
			Transmit: xdpfab.TransmitInfo{OpFlags: xdpfab.FlagDeliveryComplete, MsgOrder: allAtomicOrders | xdpfab.OrderRAR | xdpfab.OrderRAW | xdpfab.OrderWAR | xdpfab.OrderWAW},
			Domain: xdpfab.DomainInfo{ResourceMgmt: xdpfab.RMEnabled, Progress: xdpfab.ProgressManual, ControlProgress: xdpfab.ProgressManual,
				Threading: xdpfab.ThreadCompletion, AVType: xdpfab.AVTable, MRMode: optionalMR},
		}, xdpfab.CapRMA | xdpfab.CapTagged | xdpfab.CapMsg | xdpfab.CapMultiRecv | xdpfab.CapDirectedRecv, ""},
		"fabtests": {xdpfab.Info{
			Caps: xdpfab.CapAtomic, Mode: xdpfab.ModeContext | xdpfab.ModeContext2,
			Endpoint: xdpfab.EndpointInfo{Type: xdpfab.EndpointRDM, MaxMsgSize: 1024},
			Domain:   xdpfab.DomainInfo{Threading: xdpfab.ThreadDomain, MRMode: optionalMR | xdpfab.MRLocal | xdpfab.MRRaw},
			Fabric:   xdpfab.FabricInfo{API: xdpfab.MakeVersion(1, 21)},
		}, xdpfab.CapMsg | xdpfab.CapCollective, "collective"},
	} {
		c.hints.Domain.Instance = d
		if list, err := xdpfab.GetInfo(ctx(t), &c.hints); err != nil || list[0].Domain.MRMode != 0 || list[0].Mode != 0 {
			t.Errorf("%s: %v, %v", name, err, list)
		}
		c.hints.Caps |= c.beyond
		_, err := xdpfab.GetInfo(ctx(t), &c.hints)
		if c.needs == "" {
			if err != nil {
				t.Errorf("%s with %v: %v", name, c.beyond, err)
			}
		} else if !errors.Is(err, xdpfab.ErrNoInfo) || !strings.Contains(err.Error(), "caps "+c.needs+": not offered") {
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
	native := i.Caps&xdpfab.CapAtomic != 0 && i.Transmit.MsgOrder&allAtomicOrders == allAtomicOrders &&
		sizes.RAW.Allows(1<<40) && sizes.WAR.Allows(1<<40) && sizes.WAW.Allows(1<<40)
	if !native {
		t.Errorf("atomics are not advertised: %v", &i)
	}
	if p, s := i.Caps&xdpfab.PrimaryCaps, i.Caps&xdpfab.SecondaryCaps; p != xdpfab.CapMsg|xdpfab.CapTagged|xdpfab.CapDirectedRecv|xdpfab.CapAtomic|xdpfab.CapRMA|xdpfab.CapNamedRX|xdpfab.CapAVUserID || s != xdpfab.CapMultiRecv|xdpfab.CapTrigger|xdpfab.CapRMAEvent|xdpfab.CapSource|xdpfab.CapFence|xdpfab.CapSharedAV|xdpfab.CapLocalComm|xdpfab.CapRemoteComm ||
		i.Caps&xdpfab.ModifierCaps != initiatingCaps|targetCaps {
		t.Errorf("capabilities %v, %v, %v", p, s, i.Caps)
	}
	if v := i.Fabric.ProviderVersion.String(); !strings.HasPrefix(version.Version, v+".") {
		t.Errorf("provider version %s, want that of %s", v, version.Version)
	}
	if o := i.Domain; o.Threading != xdpfab.ThreadSafe || o.ResourceMgmt != xdpfab.RMEnabled || o.AVType != xdpfab.AVTable || o.MRMode != 0 ||
		o.Progress != xdpfab.ProgressAuto || o.ControlProgress != xdpfab.ProgressAuto {
		t.Errorf("not the models that serve everybody: %v", &i)
	}
	if i.Endpoint.RMAOrder != sizes || i.Transmit.MsgOrder != allOrders {
		t.Errorf("remote reads and writes are not advertised as atomics are: %v", &i)
	}
	if r := i.Receive; r.Size != 1024 || r.TotalBufferedRcv != 4<<20 || r.IOVLimit != xdpfab.MaxPieces || r.OpFlags != 0 || r.MsgOrder != allOrders {
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
	list, err := xdpfab.GetInfo(ctx(t), &xdpfab.Info{
		Caps: xdpfab.CapAtomic | xdpfab.CapRMA | xdpfab.CapMsg | xdpfab.CapTagged | xdpfab.CapWrite, Transmit: xdpfab.TransmitInfo{Size: 4}, Domain: xdpfab.DomainInfo{Instance: a}})
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
	for buffered, limit := range map[int]xdpfab.Limit{-1: 0, 0: 4 << 20, 100: 100} {
		listening, err := a.NewEndpoint(xdpfab.EndpointAttr{Number: xdpfab.AnyNumber, BufferedReceive: buffered, ReceiveSize: 5, ReceiveFlags: xdpfab.FlagMultiRecv})
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
	if _, err := a.NewEndpoint(xdpfab.EndpointAttr{Number: 7, InjectSize: inject + 1}); !errors.Is(err, xdpfab.ErrTooBig) {
		t.Error(err)
	}
	if _, err := a.NewEndpoint(xdpfab.EndpointAttr{Number: int(list[0].Domain.Endpoints)}); err == nil {
		t.Error("there is an endpoint beyond ep_cnt")
	}
	if info := a.Info(); info.Domain.Instance != a || info.Domain.Name != a.Interface().Name || info.Source != a.Name(0) {
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
	ep, err := d.NewEndpoint(xdpfab.EndpointAttr{})
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
	a, b, err := xdpfab.Pipe(xdpfab.DomainAttr{}, xdpfab.DomainAttr{MRMode: xdpfab.MRVirtAddr | xdpfab.MRAllocated | xdpfab.MRProvKey})
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
	if mode := b.Info().Domain.MRMode; mode&xdpfab.MRVirtAddr == 0 {
		t.Errorf("mode %v", mode)
	}
	for _, mode := range []xdpfab.MRMode{xdpfab.MRBasic, xdpfab.MRScalable, xdpfab.MRLocal, xdpfab.MRRaw, xdpfab.MRMMUNotify, xdpfab.MRRMAEvent,
		xdpfab.MREndpoint, xdpfab.MRHMEM, xdpfab.MRCollective, xdpfab.MRXPUDesc} {
		if _, err := xdpfab.NewFabric(xdpfab.DomainAttr{MRMode: mode}); !errors.Is(err, xdpfab.ErrNotImplemented) {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

// A clone shares no memory with its original (fi_dupinfo).
func TestInfoClone(t *testing.T) {
	i := &xdpfab.Info{Missing: []string{"a"}, Domain: xdpfab.DomainInfo{AuthKey: []byte{1}}, Endpoint: xdpfab.EndpointInfo{AuthKey: []byte{2}}}
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
	if xdpfab.OverSockets {
		format = `"addr_format":"ipv4"`
	}
	j, err := json.Marshal(&i)
	if err != nil {
		t.Fatal(err)
	}
	text := i.String()
	for _, want := range []string{"    caps: msg|rma|tagged|atomic|named_rx_ctx|directed_recv|", "    ep_attr:\n        type: rdm\n        protocol: xdpfab", "cq_cnt: unlimited", "api_version: 2.6", "        max_order_atomic:\n            raw: unlimited"} {
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
		xdpfab.ModeContext | xdpfab.ModeBufferedRecv: "context|buffered_recv", xdpfab.MRBasic | xdpfab.MRXPUDesc: "basic|xpu_desc",
		xdpfab.OrderRAR | xdpfab.OrderAtomicWAW: "rar|atomic_waw", xdpfab.CapMsg | xdpfab.CapRemoteComm: "msg|remote_comm",
		xdpfab.TrafficNetworkControl: "network_ctrl", xdpfab.EndpointType(9): "EndpointType(9)", xdpfab.ThreadEndpoint: "endpoint",
		xdpfab.RMEnabled: "enabled", xdpfab.AVMap: "map", xdpfab.AddrIPv6: "ipv6", xdpfab.Unlimited: "unlimited", xdpfab.Limit(5): "5",
		xdpfab.CapXPU | xdpfab.CapRead: "xpu|read", xdpfab.CapSourceErr | xdpfab.CapRMAPmem: "source_err|rma_pmem",
	} {
		if value.String() != want {
			t.Errorf("%v, want %s", value, want)
		}
	}
}
