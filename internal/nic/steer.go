// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Steering has a NIC deliver xdpfab's frames on the queues in use. What is spread by
// hash, UDP and all other traffic, is spread over those alone; raw Ethernet has a rule
// for queue 0, where the driver takes one. A file says what was before, from before the
// first change on until the last one is undone: so the next process can undo it after
// kill -9.
type Steering struct {
	Rule bool   // raw Ethernet has its rule
	Why  string // it has none, in the driver's word; or the table was not set

	c    Classifier
	path string
	was  before
}

// before is the file.
type before struct {
	Interface string   `json:"interface"`
	Index     int      `json:"index"`
	MAC       string   `json:"mac"`
	Table     []uint32 `json:"table"`   // as it was; empty: the driver's own
	Set       []uint32 `json:"set"`     // as it is now; empty if it was left
	Rule      Rule     `json:"rule"`    // that is added
	Places    []uint32 `json:"places"`  // of the rules that there were
	Rules     bool     `json:"rules"`   // the driver has rules
	Queues    int      `json:"queues"`  // in use
	Default   bool     `json:"default"` // Table was the driver's own
}

// ErrNoSteering means that the driver lets nobody choose queues.
var ErrNoSteering = errors.New("the driver has neither an indirection table nor rules on EtherTypes")

// Steer steers to queues 0 to queues-1 of an interface. If a former process has left it
// steered so, it is taken over, and otherwise undone first.
func Steer(c Classifier, path string, i *Interface, queues int) (*Steering, error) {
	s := &Steering{c: c, path: path, was: before{Interface: i.Name, Index: i.Index, MAC: i.MAC, Queues: queues,
		Rule: Rule{EtherType: wire.EtherType}}}
	former, err := load(path)
	if err == nil && former.of(i) && former.Queues == queues && former.holds(c) {
		s.was = *former
		s.Rule = s.ruled()
		return s, nil
	}
	if err := Unsteer(c, path, i); err != nil {
		return nil, err
	}
	table, tableErr := c.Table()
	rules, rulesErr := c.Rules()
	if tableErr != nil && rulesErr != nil {
		return nil, fmt.Errorf("nic: %s, driver %s: %w (%w, %w); use as many queues as there are (ethtool -L), or "+
			"leave the steering", i.Name, i.Driver, ErrNoSteering, tableErr, rulesErr)
	}
	s.was.note(table, rules, rulesErr == nil, i.RXQueues, queues)
	if err := s.was.save(path); err != nil {
		return nil, fmt.Errorf("nic: remembering how %s was: %w", i.Name, err)
	}
	if err := s.apply(tableErr); err != nil {
		return nil, errors.Join(fmt.Errorf("nic: steering %s: %w", i.Name, err), Unsteer(c, path, i))
	}
	return s, nil
}

// note records what is there, and what is to be.
func (b *before) note(table []uint32, rules map[uint32]Rule, ruled bool, all, queues int) {
	b.Rules, b.Default = ruled, true
	for place := range rules {
		b.Places = append(b.Places, place)
	}
	slices.Sort(b.Places)
	for i, queue := range table {
		b.Default = b.Default && queue == uint32(i%all)
		b.Set = append(b.Set, uint32(i%queues))
	}
	b.Table = table
}

// apply makes the changes, and looks whether they were made.
func (s *Steering) apply(tableErr error) error {
	if tableErr != nil {
		s.Why = fmt.Sprintf("no indirection table: %v", tableErr)
	} else if err := s.c.SetTable(s.was.Set); err != nil {
		return fmt.Errorf("setting the indirection table: %w", err)
	} else if now, err := s.c.Table(); err != nil || !slices.Equal(now, s.was.Set) {
		return fmt.Errorf("the indirection table was set, and is another: %v (%w)", now, err)
	}
	if !s.was.Rules {
		s.Why = "no rules on EtherTypes"
		return nil
	}
	if err := s.c.Insert(s.was.Rule); err != nil {
		s.Why = fmt.Sprintf("no rule on the EtherType: %v", err)
		return nil
	}
	if s.Rule = s.ruled(); !s.Rule {
		s.Why = "the driver took the rule on the EtherType, and does not have it"
	}
	return nil
}

// ruled reports whether the rule is there.
func (s *Steering) ruled() bool {
	added, _ := s.was.added(s.c)
	return len(added) > 0
}

// Undo puts everything back as it was.
func (s *Steering) Undo(i *Interface) error { return Unsteer(s.c, s.path, i) }

// Unsteer undoes what a process has left that steered the interface, if there was one. A
// table that somebody has changed since is left as it is.
func Unsteer(c Classifier, path string, i *Interface) error {
	b, err := load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("nic: what was there before steering: %w; remove the file when `ethtool -x` and "+
			"`ethtool -n` are as you want them", err)
	}
	if b.of(i) { // the settings of one that is gone went with it
		if err := b.restore(c); err != nil {
			return fmt.Errorf("nic: undoing the steering of %s: %w", b.Interface, err)
		}
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("nic: %w", err)
	}
	return nil
}

func (b *before) restore(c Classifier) error {
	added, err := b.added(c)
	if err != nil {
		return fmt.Errorf("reading the rules: %w", err)
	}
	for _, place := range added {
		if err := c.Delete(place); err != nil {
			return fmt.Errorf("deleting rule %d: %w", place, err)
		}
	}
	if !b.holds(c) { // not set yet, or undone already, or changed by somebody
		return nil
	}
	table := b.Table
	if b.Default {
		table = nil
	}
	if err := c.SetTable(table); err != nil {
		return fmt.Errorf("the indirection table: %w", err)
	}
	return nil
}

// added are the places of rules that were added.
func (b *before) added(c Classifier) (places []uint32, err error) {
	if !b.Rules {
		return nil, nil
	}
	rules, err := c.Rules()
	for place, r := range rules {
		if r == b.Rule && !slices.Contains(b.Places, place) {
			places = append(places, place)
		}
	}
	return places, err
}

// holds reports whether the table is as it was set.
func (b *before) holds(c Classifier) bool {
	if len(b.Set) == 0 {
		return false
	}
	now, err := c.Table()
	return err == nil && slices.Equal(now, b.Set)
}

// of reports whether the file is about this interface.
func (b *before) of(i *Interface) bool { return b.Index == i.Index && b.MAC == i.MAC }

func load(path string) (*before, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	b := &before{}
	if err := json.Unmarshal(text, b); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// save writes the file in one step: there is never half of it. It is not synced, for it
// is for the next process and not for the next boot, after which the NIC has its own
// settings.
func (b *before) save(path string) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	next := path + ".new"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
