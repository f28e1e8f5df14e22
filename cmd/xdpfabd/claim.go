// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/internal/version"
	"github.com/xdpfab/xdpfab/mr"
)

// Two daemons agree on a takeover while the former one serves: the next one claims its
// place, and the former one's verdict says what that one gets.

// claim is the first message of a takeover, from the daemon that takes over.
type claim struct {
	Version   int // host.HandoverVersion
	Release   string
	Interface string
	NetNS     uint64
	UDP       bool
	Regions   []legacyOf
	Sockets   []string // paths of the further ones
	AuthKeys  bool     // it knows authorization keys of regions
	Progress  bool     `json:",omitempty"` // it knows verdicts of progress
	Looks     bool     `json:",omitempty"` // it wants the verdict alone; an older one waits until this one hangs up
}

// legacyOf is a region, as far as it has to be the same in both daemons.
type legacyOf struct {
	Name    string
	Size    int
	Access  mr.Access
	Backing string
	Huge    mr.Huge
	AuthKey string `json:",omitempty"` // path of the file of its authorization key
	Auth    string `json:",omitempty"` // stands for the key; see authKey.digest
}

// unlike returns in what two regions of one name differ: what this one has, and what the
// other one has.
func (l legacyOf) unlike(other legacyOf) (has, wants string) {
	parts := func(l legacyOf) []string {
		return []string{fmt.Sprintf("%d bytes", l.Size), fmt.Sprintf("access %v", accessField(&l.Access)),
			"backing " + l.Backing, fmt.Sprintf("huge pages %v", l.Huge)}
	}
	var these, those []string
	a, b := parts(l), parts(other)
	for i := range a {
		if a[i] != b[i] {
			these, those = append(these, a[i]), append(those, b[i])
		}
	}
	if l.Auth != other.Auth && l.Backing == backingResident { // other regions may get another key
		these, those = append(these, "its authorization key"), append(those, "another one or none")
	}
	return strings.Join(these, ", "), strings.Join(those, ", ")
}

// verdict describes whether a step has succeeded.
type verdict struct {
	Error string
	// Progress says that a guest has moved, and others have yet to: another verdict
	// follows. In the answer to a claim it says that this daemon knows such verdicts.
	Progress bool `json:",omitempty"`
	PID      int  // of the next daemon
	Queues   int  // of this one
	lending
	Pin  string // folder in which this one keeps its resident regions; empty for none
	VLAN string `json:",omitempty"` // whose frames it takes; an older release takes any
	// Regions are those that pass to the next daemon: those that it claims, and those
	// that a command added here. It makes the others anew.
	Regions []legacyOf
	Keys    []uint64 // of those, in this order, which stay; none from an older release
	Files   []fileID // in which those lie, in this order; none from an older release
}

func refusal(err error) verdict {
	if err == nil {
		return verdict{}
	}
	return verdict{Error: err.Error()}
}

// hear receives a verdict, and returns its error.
func hear(conn net.Conn) (v verdict, err error) {
	if err = control.Hear(conn, &v); err == nil && v.Error != "" {
		err = errors.New(v.Error)
	}
	return v, err
}

// claim returns what the daemon of a configuration claims.
func (c Config) claim() claim {
	x := claim{
		Version: host.HandoverVersion, Release: version.Version,
		Interface: c.Interface, NetNS: control.Namespace(), UDP: c.UDP, Sockets: c.paths()[1:],
		AuthKeys: true, Progress: true,
	}
	for _, r := range c.Regions {
		x.Regions = append(x.Regions, r.legacy())
	}
	return x
}

// claimAt returns what the daemon claims of the one at the control socket. A daemon with
// UDP can take the place of one without: its program adds UDP to what is there. Then it
// claims no UDP, since any release agrees to a claim of what it has itself. A daemon
// whose status this release cannot read is claimed as if it had UDP.
func (c Config) claimAt(ctx context.Context) (claim, error) {
	x := c.claim()
	if !x.UDP {
		return x, nil
	}
	d, err := control.Dial(c.controlPath())
	if err != nil {
		return x, err
	}
	defer d.Close()
	d.Patience = control.AskLimit
	was, err := d.Status(ctx)
	switch {
	case errors.Is(err, control.ErrVersion):
		return x, nil
	case err != nil:
		return x, err
	}
	x.UDP = was.Interface.UDP
	return x, nil
}

// agree returns the regions that the next daemon will serve on, and the answer to its
// claim. It reports an error unless the claim is for this daemon's place and interface.
func (s *server) agree(c *claim) (given []*region, v verdict, err error) {
	if err = s.fits(c); err == nil {
		given, err = s.served.given(c.Regions)
	}
	if err == nil {
		err = errors.Join(keysKept(given, c), s.host.CanHandOver())
	}
	v = verdict{Progress: true, Queues: s.host.Node().Dev.Info().Queues, lending: s.lending(), Pin: s.host.Folder(),
		VLAN: s.cfg.VLAN.String()}
	for _, r := range given {
		id, _, e := r.file()
		v.Regions, v.Keys, v.Files = append(v.Regions, r.legacy()), append(v.Keys, r.reg.Key()), append(v.Files, id)
		err = errors.Join(err, e)
	}
	return given, v, err
}

// fits reports an error unless the claim is for this daemon's place.
func (s *server) fits(c *claim) error {
	own := s.cfg.claim()
	if c.Version != own.Version {
		return fmt.Errorf(
			"release %s hands over version %d, release %s takes version %d: stop this daemon and start the other",
			version.Version, own.Version, c.Release, c.Version)
	}
	is := s.host.Node().Dev.Info().Name
	switch {
	case is != own.Interface && c.NetNS == own.NetNS && (c.Interface == is || c.Interface == own.Interface):
		return fmt.Errorf("%s is named %s by now, and could not be opened again: name it %s (`ip link set dev %s name "+
			"%s`) and give -i %s, or stop this daemon and start the other", own.Interface, is, own.Interface, is,
			own.Interface, own.Interface)
	case c.Interface != own.Interface || c.NetNS != own.NetNS:
		return fmt.Errorf("the daemon that serves has %s of network namespace %d, not %s of %d: name another control "+
			"socket (--control)", own.Interface, own.NetNS, c.Interface, c.NetNS)
	case s.host.Node().Dev.Info().Transport == udpnode.UDP.String():
		return errors.New("the daemon that serves has UDP sockets, and hands over to no other one: stop it and start " +
			"the other")
	case own.UDP && !c.UDP:
		return errors.New("the daemon that serves has udp = true, and its sessions over UDP could not go on at " +
			"one with udp = false: want udp = true, or stop the first and start the other")
	case c.UDP && !own.UDP:
		return fmt.Errorf("the daemon that serves has udp = false, and release %s claims UDP of it: want udp = "+
			"false, or stop the first and start the other", c.Release)
	}
	if !slices.Equal(c.Sockets, own.Sockets) {
		return fmt.Errorf("the daemon that serves has %s, and the one that is to take its place %s: want the same in "+
			"the same order, or stop the first and start the other", further(own.Sockets), further(c.Sockets))
	}
	return nil
}

// further names control sockets.
func further(paths []string) string {
	if len(paths) == 0 {
		return "no further control socket"
	}
	return "the further control sockets " + strings.Join(paths, ", ")
}
