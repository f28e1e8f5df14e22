// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"strings"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Port is what became of a datagram to the UDP port of frames.
type Port uint8

// The fates of a datagram.
const (
	PortUntried Port = iota
	PortRefused      // the host is there, and nothing takes the port
	PortSilent       // taken by a program, or lost
)

// Finding is what is known of a peer that does not answer.
type Finding struct {
	Peer      wire.Addr
	Own       bool     // the address is the interface's
	Other     string   // another interface of this node, which has the address; empty if none has
	By        string   // with Other, what the frames go by instead
	Nobody    error    // no route to the peer, or nobody answers for its address; nil if not known
	Gateway   string   // the router on the way, empty without one
	Neighbour bool     // the neighbour table has the peer
	Port      Port     // of the IP address
	Tried     []string // other addresses of the peer, which were dialled
	Answers   string   // the one of these that answered, empty if none did
	NoUDP     bool     // this node cannot send UDP: its daemon has it off
}

// Cause is why a peer may not answer.
type Cause struct {
	Sure   bool   // the evidence leaves no other cause
	Text   string // what is, or may be, wrong
	Remedy string // what to do
}

// String returns text and remedy.
func (c Cause) String() string { return c.Text + ": " + c.Remedy }

// Causes returns why the peer does not answer, the most likely cause first. If the first
// one is sure, it is the only one.
func (f *Finding) Causes() []Cause {
	for _, sure := range []func() (Cause, bool){f.other, f.own, f.nobody, f.elsewhere, f.refused} {
		if c, is := sure(); is {
			c.Sure = true
			return []Cause{c}
		}
	}
	if f.Peer.IsIP() {
		return f.silentIP()
	}
	return f.silentMAC()
}

func (f *Finding) other() (Cause, bool) {
	return Cause{Text: fmt.Sprintf("%s is %s's address on this node, and %s", f.host(), f.Other, f.By),
		Remedy: "give that of the peer, or name the interface that has it: -i " + f.Other}, f.Other != ""
}

func (f *Finding) own() (Cause, bool) {
	return Cause{Text: fmt.Sprintf("%s is an address of this node", f.host()),
		Remedy: "give that of the peer, which `ip address` shows there"}, f.Own
}

func (f *Finding) nobody() (Cause, bool) {
	if f.Nobody == nil {
		return Cause{}, false
	}
	return Cause{Text: tell.Plain(f.Nobody),
		Remedy: "check the address, and that the peer is up and on this network"}, true
}

// elsewhere is the cause if the peer answers over the other encapsulation.
func (f *Finding) elsewhere() (Cause, bool) {
	if f.Peer.IsIP() {
		remedy := "use that address, or have the peer serve UDP: xdpfabd without --udp=false, no " +
			"DomainAttr.EthernetOnly"
		if f.Port != PortRefused {
			remedy = "compare `ip address` there, since its IP address may have changed; " + remedy
		}
		return Cause{Text: fmt.Sprintf("the peer answers at %s, over raw Ethernet, and not over UDP", f.Answers),
			Remedy: remedy}, f.Answers != ""
	}
	return Cause{Text: fmt.Sprintf("the peer answers at %s, over UDP, and not over raw Ethernet", f.Answers),
		Remedy: fmt.Sprintf("use that address; the peer uses UDP sockets, or a switch drops EtherType %#x",
			wire.EtherType)}, f.Answers != ""
}

// whichOf tells a host that serves no UDP from one that has lost its IP address: the
// kernel of the former refuses the port.
func (f *Finding) whichOf() string {
	if f.Port == PortRefused {
		return fmt.Sprintf("that host refuses UDP port %d of %s, so its UDP is off", wire.UDPPort, f.host())
	}
	return fmt.Sprintf("nobody refuses UDP port %d of %s, so its address has probably changed", wire.UDPPort, f.host())
}

func (f *Finding) refused() (Cause, bool) {
	text := fmt.Sprintf("the host %s is up, but nothing there takes UDP port %d", f.host(), wire.UDPPort)
	if len(f.Tried) > 0 {
		text += ", nor frames to " + strings.Join(f.Tried, " and ")
	}
	return Cause{Text: text, Remedy: "start xdpfabd there, on the interface that has this address; if it runs " +
			"there, it may have another --vlan: see the line 802.1Q tags of `xdpfab stat` there"},
		f.Port == PortRefused && f.Peer.IsIP()
}

// silentIP are the causes if nothing comes back from an IP address.
func (f *Finding) silentIP() []Cause {
	firewall := Cause{Text: fmt.Sprintf("a firewall on the way drops UDP port %d", wire.UDPPort),
		Remedy: "let it pass both ways, also in the cloud's security group"}
	stopped := Cause{Text: "the program at the peer is stopped, or does not use the interface with this address",
		Remedy: "look with `xdpfab stat` there"}
	network := Cause{Text: "the peer's VLAN or network namespace is another one",
		Remedy: "compare `xdpfab info` on both nodes"}
	if f.Gateway != "" {
		firewall.Text = fmt.Sprintf("a firewall on the way by %s drops UDP port %d", f.Gateway, wire.UDPPort)
		return []Cause{firewall, stopped, network}
	}
	return []Cause{stopped, firewall, network}
}

// silentMAC are the causes if nothing comes back from a MAC address.
func (f *Finding) silentMAC() []Cause {
	none := Cause{Text: fmt.Sprintf("no host with %s is known here", f.host()),
		Remedy: "compare it with `ip link` at the peer; MAC addresses do not pass routers: give the peer's IP address"}
	daemon := Cause{Text: "no xdpfabd runs there, or it uses another interface or --vlan",
		Remedy: "look with `xdpfab stat` there"}
	dropped := Cause{Text: fmt.Sprintf("a switch or a cloud drops EtherType %#x", wire.EtherType),
		Remedy: "give the peer's IP address"}
	if f.NoUDP {
		dropped.Remedy += ", and have this node's daemon serve UDP"
	}
	if f.Neighbour || f.Port == PortRefused {
		return []Cause{daemon, dropped}
	}
	return []Cause{none, daemon, dropped}
}

// host is the peer's address without its endpoint.
func (f *Finding) host() string {
	a := f.Peer
	a.Endpoint, a.Lane = 0, 0
	return a.String()
}

// Hint says in a line why the peer does not answer, and which command knows more.
func (f *Finding) Hint(ifname string) string {
	causes := f.Causes()
	if causes[0].Sure {
		return fmt.Sprintf("%v; %s", causes[0], f.more(ifname))
	}
	var b strings.Builder
	b.WriteString("the likely causes:")
	for n, c := range causes {
		fmt.Fprintf(&b, " (%d) %v;", n+1, c)
	}
	return b.String() + " " + f.more(ifname)
}

// more names the command that knows more.
func (f *Finding) more(ifname string) string { return calls.Diagnose(f.Peer.String(), ifname) }
