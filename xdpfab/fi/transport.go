// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Transport is what carries the packets of a domain. Its text is "xdp", "udp" or "auto".
type Transport uint8

// The transports.
const (
	// TransportXDP is AF_XDP and an XDP program.
	TransportXDP Transport = iota
	// TransportUDP is UDP sockets of the kernel: any system, any interface and no
	// privilege, but slower. Peers are reached by their IP addresses,
	// whichever transport they use, unless they have DomainAttr.EthernetOnly. The
	// domain's interface may also be named by one of its IP addresses, and then only that
	// one is used. One domain or other program can use each address.
	TransportUDP
	// TransportAuto is TransportXDP where that can be had, otherwise TransportUDP, which
	// then has no resident regions. InterfaceInfo.Transport tells which one it is.
	TransportAuto
)

var transportNames = []string{TransportXDP: "xdp", TransportUDP: "udp", TransportAuto: "auto"}

// String returns the text, or Transport(n) for a value that is none of the constants.
func (t Transport) String() string { return modeString("Transport", transportNames, t) }

// MarshalText implements encoding.TextMarshaler.
func (t Transport) MarshalText() ([]byte, error) { return modeText("transport", transportNames, t) }

// UnmarshalText implements encoding.TextUnmarshaler. It changes nothing when it fails.
func (t *Transport) UnmarshalText(text []byte) error {
	return parseMode("transport", transportNames, text, t)
}

// attaches reports whether a daemon is looked for.
func (a *DomainAttr) attaches() bool {
	if a.Transport == TransportUDP && a.Attach == AttachAuto {
		return false
	}
	return a.Attach != AttachNever && a.ResidentPin == ""
}

// bySockets records that the domain has UDP sockets, which have no resident memory.
func (a *DomainAttr) bySockets(ctx context.Context, ifname string, dev *udpnode.Device) {
	a.ResidentPin, a.ResidentLeave = "", false
	if a.Log != nil && dev.NoXDP != nil {
		a.Log.LogAttrs(ctx, slog.LevelWarn, "UDP sockets in place of AF_XDP",
			slog.String("interface", ifname), slog.Any("cause", dev.NoXDP))
	}
	if a.Log != nil && dev.Beside != "" {
		a.Log.LogAttrs(ctx, slog.LevelWarn, "no peer may be heard", slog.String("interface", ifname),
			slog.String("cause", dev.Beside))
	}
}

// socketEncap describes the encapsulation of a domain with UDP sockets, also of one
// whose host has them.
func socketEncap(dev node.Device, addr string) encap {
	format, ip := AddrIPv6, netip.MustParseAddr(addr)
	if ip.Is4() {
		format = AddrIPv4
	}
	fabric := netip.PrefixFrom(ip, ip.BitLen())
	if u, is := dev.(*udpnode.Device); is {
		fabric = u.Network(ip)
	}
	return encap{format, addr, fabric.Masked().String()}
}

// settle records the place of a domain that has an interface. UDP sockets leave the
// interface to others.
func (d *Domain) settle(p node.Place) {
	if d.node.Dev.Medium() == wire.OnSocket {
		d.node.Place = p
		return
	}
	d.enter(p)
}
