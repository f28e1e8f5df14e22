// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Steering has a NIC deliver xdpfab's frames on the queues in use. Raw Ethernet has a
// rule for queue 0, where the driver takes one, and so has UDP if one queue is in use:
// all other traffic is then left alone. Otherwise the indirection table spreads what is
// hashed, UDP and all other traffic, over the queues in use alone. A file says what was
// before, from before the first change on until the last one is undone: so the next
// process can undo it after kill -9.
type Steering struct {
	Rule  bool   // raw Ethernet has its rule
	Ports bool   // and UDP has its rules
	Table bool   // the indirection table was set
	Why   string // what is not steered, in the driver's words; empty if everything is

	c    Classifier
	path string
	nic  *Steered
	was  before
}

// Steered is a NIC that is to be steered.
type Steered struct {
	Interface
	Identity Identity
	Use      int  // queues, from 0 on
	UDP      bool // is used, besides raw Ethernet

	// find opens the NIC of an identity under whatever name it has by now, and returns
	// what closes it; or an error that matches fs.ErrNotExist.
	find func(Identity) (*Steered, Classifier, func(), error)
}

// ErrNoSteering means that the driver lets nobody choose queues.
var ErrNoSteering = errors.New("the driver takes neither an indirection table nor rules")

// Steer steers a NIC. If a former process has left it steered so, it is taken over, and
// otherwise undone first. The notes say what was met.
func Steer(c Classifier, path string, n *Steered) (s *Steering, notes []string, err error) {
	s = &Steering{c: c, path: path, nic: n}
	if former, err := load(path); err == nil && former.continues(c, n) {
		s.was = *former
		s.look()
		s.lacks(nil)
		return s, nil, nil
	}
	if notes, err = Unsteer(c, path, n); err != nil {
		return nil, notes, err
	}
	table, tableErr := c.Table()
	rules, rulesErr := c.Rules()
	s.was.note(n, table, rules, rulesErr == nil)
	if err := writeOwn(path, &s.was); err != nil {
		return nil, notes, fmt.Errorf("remembering how %s was, before any change: %w", n.Name, err)
	}
	refused, err := s.apply(tableErr, rulesErr)
	if err == nil && !s.Rule && !s.Ports && !s.Table {
		err = fmt.Errorf("driver %s: %w (%s); use as many queues as there are (ethtool -L), or do without --steer",
			n.Driver, ErrNoSteering, strings.Join(texts(refused), "; "))
	}
	if err != nil {
		more, undoing := Unsteer(c, path, n)
		return nil, append(notes, more...), errors.Join(fmt.Errorf("steering %s: %w", n.Name, err), undoing)
	}
	s.lacks(refused)
	return s, notes, nil
}

// note records what is there, and all that may be done.
func (b *before) note(n *Steered, table []uint32, rules map[uint32]Rule, ruled bool) {
	*b = before{Version: fileVersion, Interface: n.Name, NIC: n.Identity, Queues: n.Use, UDP: n.UDP,
		Ruled: ruled, Default: true, Table: table, Added: []Rule{{EtherType: wire.EtherType}}}
	if n.UDP {
		b.Added = append(b.Added, Rule{IP: 4, Port: wire.UDPPort}, Rule{IP: 6, Port: wire.UDPPort})
	}
	for place := range rules {
		b.Places = append(b.Places, place)
	}
	slices.Sort(b.Places)
	for i, queue := range table {
		b.Default = b.Default && queue == uint32(i%n.RXQueues)
		b.Set = append(b.Set, uint32(i%n.Use))
	}
}

// continues reports whether the file is about this NIC, in the same use, and nothing has
// been changed since.
func (b *before) continues(c Classifier, n *Steered) bool {
	if !b.NIC.is(&n.Identity) || b.Queues != n.Use || b.UDP != n.UDP {
		return false
	}
	s := Steering{c: c, nic: n, was: *b}
	s.look()
	return s.covers()
}

// apply makes as few changes as suffice, and looks whether they were made. It returns
// what the driver refused.
func (s *Steering) apply(tableErr, rulesErr error) (refused []error, err error) {
	for _, r := range s.was.Added {
		if rulesErr == nil && (r.IP == 0 || s.nic.Use == 1) {
			refused = append(refused, s.insert(r))
		}
	}
	if s.look(); s.covers() {
		return nil, nil
	}
	switch {
	case rulesErr != nil:
		refused = append(refused, fmt.Errorf("no rules: %w", rulesErr))
	case tableErr != nil && s.nic.Use > 1: // better all on one queue than anywhere
		for _, r := range s.was.Added[1:] {
			refused = append(refused, s.insert(r))
		}
	}
	if tableErr != nil {
		refused = append(refused, fmt.Errorf("no indirection table: %w", tableErr))
	} else if err := s.c.SetTable(s.was.Set); err != nil {
		return refused, fmt.Errorf("setting the indirection table: %w", err)
	} else if now, err := s.c.Table(); err != nil {
		return refused, fmt.Errorf("reading the indirection table that was set: %w", err)
	} else if !slices.Equal(now, s.was.Set) {
		return refused, fmt.Errorf("the driver took the indirection table, and has another: %v", now)
	}
	s.look()
	return refused, nil
}

func (s *Steering) insert(r Rule) error {
	if err := s.c.Insert(r); err != nil {
		return fmt.Errorf("no rule on %v: %w", r, err)
	}
	if has, _ := s.was.added(s.c); !slices.Contains(has, r) {
		return fmt.Errorf("the driver took the rule on %v, and does not have it", r)
	}
	return nil
}

// look finds out what is in force.
func (s *Steering) look() {
	has, _ := s.was.added(s.c)
	ports := slices.DeleteFunc(slices.Clone(has), func(r Rule) bool { return r.IP == 0 })
	s.Rule, s.Ports, s.Table = len(has) > len(ports), len(ports) >= 2, s.was.holds(s.c)
}

// covers reports whether everything that is in use is steered. Whether a table without a
// rule has to do with raw Ethernet is up to the driver.
func (s *Steering) covers() bool { return s.Table || s.Rule && (s.Ports || !s.was.UDP) }

// lacks says what is not steered, and why.
func (s *Steering) lacks(refused []error) {
	why := texts(refused)
	if len(why) == 0 && !s.Rule {
		why = append(why, "no rule on "+Rule{EtherType: wire.EtherType}.String())
	}
	if limits, _ := LimitsOf(s.nic.Driver); len(why) > 0 && limits.Rules != nil {
		why = append(why, limits.Rules.of(s.nic.Name))
	}
	s.Why = strings.Join(why, "; ")
}

// texts are those of the errors that are not nil.
func texts(list []error) (all []string) {
	for _, err := range list {
		if err != nil {
			all = append(all, err.Error())
		}
	}
	return all
}
