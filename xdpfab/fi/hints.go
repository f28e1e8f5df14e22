// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"reflect"
	"strings"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// refusals lists what hints ask for beyond an offer. Each names the field, what was asked
// for and what is offered.
func (h *Info) refusals(offer *Info) []string {
	offer = offer.Clone()
	offer.order(h.Transmit.MsgOrder)
	compared := *h
	if h.Endpoint.TXContexts == SharedContext { // every endpoint can have one
		compared.Endpoint.TXContexts = 0
	}
	if h.Endpoint.RXContexts == SharedContext {
		compared.Endpoint.RXContexts = 0
	}
	list := unmet(nil, "", reflect.ValueOf(compared), reflect.ValueOf(*offer))
	if m := h.Domain.MRMode; m&(MRBasic|mrScalable) != 0 && bits.OnesCount32(uint32(m)) > 1 {
		return append(list, fmt.Sprintf("domain_attr.mr_mode %v: want basic or scalable alone", m))
	}
	if offer.Domain.Instance != nil {
		return append(list, h.afterwards(offer)...)
	}
	return list
}

// afterwards lists the hints that can no longer be met because the domain is open.
// Automatic progress serves a caller that asks for manual progress.
func (h *Info) afterwards(offer *Info) (list []string) {
	if want, have := h.Domain.TrafficClass, offer.Domain.TrafficClass; want != TrafficUnspec && want != have {
		list = append(list, fmt.Sprintf("domain_attr.tclass %v: want %v, with which the domain is open", want, have))
	}
	if k := h.Domain.AuthKey; len(k) > 0 && k.valid() && !bytes.Equal(k, offer.Domain.AuthKey) {
		list = append(list, fmt.Sprintf("domain_attr.auth_key of %v: the domain is open with another one, or none", k))
	}
	want, have := h.Domain.MRMode, offer.Domain.MRMode
	if want == 0 || want == MRBasic && have|MRAllocated == basicMR || want != MRBasic && want&have == have {
		return list
	}
	return append(list, fmt.Sprintf("domain_attr.mr_mode %v: want %v, with which the domain is open", want, have))
}

// unmet compares the fields of two structures, of which the type has the rule: a limit
// must allow what is asked for, bits must be among those offered, a version must be as
// new, and anything else must be equal. Zero asks for nothing.
func unmet(list []string, in string, hint, offer reflect.Value) []string {
	for i := range hint.NumField() {
		f := hint.Type().Field(i)
		h, o := hint.Field(i), offer.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if h.IsZero() || name == "-" || settled(h.Interface()) {
			continue
		}
		if f.Type.Kind() == reflect.Struct {
			list = unmet(list, in+name+".", h, o)
			continue
		}
		if why := unmetField(h.Interface(), o.Interface()); why != "" {
			list = append(list, in+name+" "+why)
		}
	}
	return list
}

// settled reports whether every offer satisfies the hint: by what settle does with it, or
// because only providers that need it look at it.
func settled(hint any) bool {
	switch h := hint.(type) {
	case MRMode, []string:
		return true
	case TrafficClass:
		return h.valid()
	case Threading:
		return int(h) < len(threadingNames)
	case ResourceMgmt:
		return int(h) < len(rmNames)
	case AVType:
		return int(h) < len(avNames)
	case ProgressMode:
		return int(h) < len(progressNames)
	}
	return false
}

// unmetField returns why an offer does not have what a field of the hints asks for.
func unmetField(hint, offer any) string {
	switch h := hint.(type) {
	case Limit:
		if o := offer.(Limit); !o.Allows(h) {
			return fmt.Sprintf("%v: want at most %v", h, o)
		}
	case Caps:
		if beyond := h &^ offer.(Caps); beyond != 0 {
			return fmt.Sprintf("%v: not offered, want some of %v%s", beyond, offer, beyond.whyNot())
		}
	case Order:
		if beyond := h &^ offer.(Order); beyond != 0 && h != OrderNone {
			return fmt.Sprintf("%v: not promised, want some of %v", beyond, offer)
		}
	case OpFlags:
		if beyond := h &^ offer.(OpFlags); beyond != 0 {
			return fmt.Sprintf("%v: not for all operations, want some of %v", beyond, offer)
		}
	case Version:
		if h > offer.(Version) {
			return fmt.Sprintf("%v: want at most %v", h, offer)
		}
	case uint32, uint64:
		if reflect.ValueOf(h).Uint() > reflect.ValueOf(offer).Uint() {
			return fmt.Sprintf("%d: want at most %d", h, offer)
		}
	case AuthKey:
		if !h.valid() {
			return fmt.Sprintf("of %v: want at most %d", h, mr.MaxAuthKey)
		}
	default:
		if h != offer {
			return fmt.Sprintf("%v: want %v", h, offer)
		}
	}
	return ""
}

// networks are those of the address formats that names of hosts can have.
var networks = map[AddrFormat]string{AddrIPv4: "ip4", AddrIPv6: "ip6"}

// addressed reads the addresses in the hints, and returns the hints in the form in which
// they can be compared with offers: of the source without the number of the endpoint,
// and with the format of the addresses. dest is that of the peer, resolved.
func (h *Info) addressed(ctx context.Context) (compared *Info, source wire.Addr, dest string, err error) {
	compared = h.Clone()
	compared.Dest = ""
	for _, hint := range []struct{ field, text string }{{"src_addr", h.Source}, {"dest_addr", h.Dest}} {
		if hint.text == "" {
			continue
		}
		a, err := node.Resolve(ctx, hint.text, cmp.Or(networks[compared.AddrFormat], "ip"))
		if err != nil {
			return nil, source, "", fmt.Errorf("xdpfab: %s: %w", hint.field, err)
		}
		format := formatOf(a)
		if f := compared.AddrFormat; f != AddrUnspec && f != format {
			return nil, source, "",
				errno.Refuse(ErrNoInfo,
					"xdpfab: %s %s is of format %v: want %v, that of addr_format and of the other address",
					hint.field, hint.text, format, f)
		}
		compared.AddrFormat = format
		if hint.field == "dest_addr" {
			dest = a.String()
		} else {
			source = a
			a.Endpoint, a.Lane = 0, 0
			compared.Source = a.String()
		}
	}
	return compared, source, dest, nil
}

// formatOf returns the format of an address.
func formatOf(a wire.Addr) AddrFormat {
	switch {
	case !a.IsIP():
		return AddrEthernet
	case a.IP.Is4():
		return AddrIPv4
	}
	return AddrIPv6
}

// settle returns the info for hints that the offer meets: what the caller can choose is
// chosen, and the rest is as offered.
func (h *Info) settle(offer *Info) Info {
	i := *offer.Clone()
	i.Caps = h.Caps.settle() & offer.Caps
	i.Transmit.Caps &= i.Caps
	i.Receive.Caps &= i.Caps
	if offer.Domain.Instance == nil {
		i.Domain.TrafficClass = h.Domain.TrafficClass
		i.Domain.AuthKey = h.Domain.AuthKey.or(nil)
		i.Domain.Progress = h.Domain.Progress
		if h.Domain.Threading == ThreadDomain && h.Domain.Progress == ProgressManual {
			i.Domain.Threading = ThreadDomain
		}
		if h.Domain.MRMode == MRBasic {
			i.Domain.MRMode = basicMR
		}
	}
	i.order(h.Transmit.MsgOrder)
	i.Endpoint.TXContexts, i.Endpoint.RXContexts = 1, 1
	if n := h.Endpoint.TXContexts; n != 0 {
		i.Endpoint.TXContexts = n
	}
	if n := h.Endpoint.RXContexts; n != 0 {
		i.Endpoint.RXContexts = n
	}
	i.Domain.AuthKeySize = Limit(len(i.Domain.AuthKey))
	i.Endpoint.AuthKey = h.Endpoint.AuthKey.or(i.Domain.AuthKey)
	i.Transmit.TrafficClass = h.Transmit.TrafficClass.or(i.Domain.TrafficClass)
	size, _ := queueSize("endpoint", int(h.Transmit.Size)) // refusals has checked it
	i.Transmit.Size = min(Limit(size), offer.Transmit.Size)
	i.Transmit.OpFlags = h.Transmit.OpFlags | FlagDeliveryComplete // which always holds
	i.receives(h)
	return i
}

// receives chooses what is about receives as hints that are met ask for it.
func (i *Info) receives(h *Info) {
	size, _ := queueSize("endpoint: receives", int(h.Receive.Size))
	i.Receive.Size, i.Receive.OpFlags = Limit(size), h.Receive.OpFlags
	if i.Receive.TotalBufferedRcv = h.Receive.TotalBufferedRcv; i.Receive.TotalBufferedRcv == 0 {
		i.Receive.TotalBufferedRcv = defaultBuffered
	}
	if i.Endpoint.MemTagFormat = h.Endpoint.MemTagFormat; i.Endpoint.MemTagFormat == 0 {
		i.Endpoint.MemTagFormat = TagGeneric
	}
}

// order says in the info which order is kept for one that is asked for.
func (i *Info) order(asked Order) {
	if i.Transmit.MsgOrder = asked.settle(); i.Transmit.MsgOrder == OrderNone {
		i.Endpoint.AtomicOrder, i.Endpoint.RMAOrder = OrderSizes{}, OrderSizes{}
	}
}
