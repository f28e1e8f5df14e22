// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Silence is the cause when an operation fails because its peer does not answer: what is
// known of it, why that may be, and the command that looks for the cause. Its text is
// made when somebody reads it.
type Silence struct {
	Cause error  // that programs look for: PeerSilent, or the end of the call's context
	Peer  string // its address
	Known *engine.Silence
	Node  *node.Node // that asked
	Bytes int        // that the operation moves, for want of Known
	told  bool
	heard bool // the peer has answered before, which a daemon alone knows otherwise
}

// HeardBefore notes in the error of a silent peer, if err is one, that it has answered
// before: whoever calls it has dialled the peer.
func HeardBefore(err error) {
	var s *Silence
	if errors.As(err, &s) {
		s.heard = true
	}
}

// SilenceTold leaves the likely causes out of the text of a silent peer's error, if err
// is one: whoever calls it adds the true one.
func SilenceTold(err error) {
	var s *Silence
	if errors.As(err, &s) {
		s.told = true
	}
}

// Unwrap returns the cause that programs look for.
func (s *Silence) Unwrap() error { return s.Cause }

func (s *Silence) Error() string {
	parts := []string{s.Cause.Error()}
	if !errors.Is(s.Cause, errno.PeerSilent) {
		parts = append(parts, errno.PeerSilent.Error())
	}
	if k := s.Known; k != nil {
		before := "it has never answered"
		if k.Answered {
			before = "it had answered before"
		}
		parts = append(parts, fmt.Sprintf("silent for %v and %d packets over %s; %s", k.For.Round(10*time.Millisecond),
			k.Packets, wayOf(&k.Link), before))
	} else if name := s.Node.Dev.Info().Daemon; name != "" {
		text := "the daemon at " + name + " gave it up"
		if s.heard {
			text += "; it had answered before"
		}
		parts = append(parts, text)
	}
	// the cause may be the end of a context by a silence
	if !s.told && !strings.Contains(parts[0], likelyCauses) && !strings.Contains(parts[0], ownFault) {
		parts = append(parts, s.likely())
	}
	return strings.Join(parts, ": ")
}

const (
	likelyCauses = "likely causes:"
	ownFault     = "the cause is on this node:"
)

// likely says why the peer may be silent, the most likely cause first.
func (s *Silence) likely() string {
	a, err := wire.ParseAddr(s.Peer)
	if err == nil {
		if fault := s.Node.Dev.OwnFault(a); fault != "" {
			return ownFault + " " + fault
		}
	}
	text := likelyCauses
	for i, c := range s.causes() {
		text += fmt.Sprintf(" (%d) %s;", i+1, c)
	}
	if s.inMemory() {
		return strings.TrimSuffix(text, ";")
	}
	return text + " " + Diagnose(s.Peer, s.Node.Dev.Info().Name)
}

func (s *Silence) causes() []string {
	a, unread := wire.ParseAddr(s.Peer)
	switch {
	case s.inMemory():
		return []string{"no domain is open there", "SetFaults or Partition loses the packets",
			"its domain has ProgressManual, and nobody calls Progress"}
	case s.heard, s.Known != nil && s.Known.Answered:
		causes := []string{
			"its program, its machine or the link has failed, or the program has ProgressManual and does not call " +
				"Progress",
			"something on the way has failed"}
		if s.Known == nil && s.Bytes >= engine.LongFrame || s.Known != nil && s.Known.Long {
			causes = append(causes,
				"packets as long as the MTU are lost: set the MTU of both ends to the least on the way")
		}
		return causes
	case unread == nil && !a.IsIP():
		return []string{"no node on this network has this MAC address",
			"neither xdpfabd nor another program serves there, on that interface",
			fmt.Sprintf("a switch or a cloud drops EtherType %#x: give the peer's IP address", wire.EtherType)}
	}
	return []string{"neither xdpfabd nor another program serves there, on the interface with this address",
		fmt.Sprintf("a firewall or a security group drops UDP port %d", wire.UDPPort),
		"its VLAN or network is another one"}
}

// inMemory reports whether a Pipe or a Network carries the packets.
func (s *Silence) inMemory() bool {
	_, is := s.Node.Dev.(*node.PipeEnd)
	return is
}

// wayOf says how packets went.
func wayOf(l *wire.Link) string {
	text := "UDP"
	switch {
	case l.Kind == wire.Ethernet:
		text = "raw Ethernet"
	case l.Medium == wire.OnSocket:
		text = "UDP sockets"
	default:
		text += fmt.Sprintf(", next hop %v", l.Remote)
	}
	if l.VLAN != 0 {
		text += fmt.Sprintf(", VLAN %d", l.VLAN)
	}
	return text
}

// Diagnose names the command that looks for the reason why a peer is silent.
func Diagnose(peer, ifname string) string {
	if ifname != "" {
		ifname = " -i " + ifname
	}
	return "`xdpfab diagnose " + peer + ifname + "` tries each step of the way"
}
