// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Undo puts everything back as it was. The name of the NIC may be another one's by now.
func (s *Steering) Undo() (notes []string, err error) {
	if s.nic.find == nil {
		return Unsteer(s.c, s.path, s.nic)
	}
	n, c, done, err := s.nic.find(s.was.NIC)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; the file stays", err)
	}
	if err != nil {
		return nil, err
	}
	defer done()
	return Unsteer(c, s.path, n)
}

// ErrSteerFile is wrapped by the errors of files that say what was before, and cannot be
// used.
var ErrSteerFile = errors.New("what was there before steering is not known")

// Unsteer undoes what a process has left that steered the NIC, if there was one: by the
// file at path, and by files next to it that are about this NIC under another name. A
// table that somebody has changed since is left as it is. A file about another NIC
// changes nothing here: that one is found by its identity, and its own settings are put
// back. The notes say what was met.
func Unsteer(c Classifier, path string, n *Steered) (notes []string, err error) {
	b, err := load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w; remove the file when `ethtool -x` and `ethtool -n` are as you want them",
			ErrSteerFile, err)
	case b.NIC.is(&n.Identity):
		notes, err = undo(b, c, path, n)
	default:
		notes, err = n.undoElsewhere(b, path)
	}
	if err != nil {
		return notes, err
	}
	for _, p := range others(path, &n.Identity) {
		if b, err = load(p); err != nil {
			continue // another process was faster
		}
		more, err := undo(b, c, p, n)
		notes = append(notes, more...)
		if err != nil {
			return notes, err
		}
	}
	return notes, nil
}

// undo restores a NIC by its file, and removes the file.
func undo(b *before, c Classifier, path string, n *Steered) (notes []string, err error) {
	if b.Interface != n.Name {
		notes = append(notes, fmt.Sprintf("%s was steered as %s, its former name", n.Name, b.Interface))
	}
	left, err := b.restore(c, n.RXQueues)
	if err != nil {
		return notes, fmt.Errorf("undoing the steering of %s: %w", n.Name, err)
	}
	if left != "" {
		notes = append(notes, left)
	}
	if err := os.Remove(path); err != nil {
		return notes, fmt.Errorf("the steering of %s is undone, but: %w", n.Name, err)
	}
	return notes, nil
}

// undoElsewhere deals with a file about another NIC, which had the name, or the control
// socket, before.
func (n *Steered) undoElsewhere(b *before, path string) (notes []string, err error) {
	if b.NIC.Boot != n.Identity.Boot {
		return []string{fmt.Sprintf("%s was steered before this boot, which has ended that", b.Interface)},
			os.Remove(path)
	}
	if n.find != nil {
		other, c, done, err := n.find(b.NIC)
		if err == nil {
			defer done()
			notes, err := undo(b, c, path, other)
			return append(notes, fmt.Sprintf("%s was steered before, and no longer is", other.Name)), err
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking for the NIC that was %s: %w", b.Interface, err)
		}
	}
	aside := path + ".gone"
	note := fmt.Sprintf("the NIC that was steered as %s (driver %s, %s) is not here any more, and nothing of it is "+
		"undone; what it had before is in %s", b.Interface, b.NIC.Driver, b.NIC.Bus, aside)
	return []string{note}, os.Rename(path, aside)
}

// restore puts the settings back, and says which it left.
func (b *before) restore(c Classifier, queues int) (left string, err error) {
	if err := b.deleteAdded(c); err != nil {
		return "", err
	}
	if len(b.Set) == 0 {
		return "", nil
	}
	now, err := c.Table()
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return "the driver has no indirection table any more", nil
	case err != nil:
		return "", fmt.Errorf("the indirection table: %w", err)
	case slices.Equal(now, b.Table): // not set yet, or undone already
		return "", nil
	case !slices.Equal(now, b.Set):
		return "the indirection table is neither as it was nor as it was set: it is left", nil
	}
	table := b.Table
	if !b.Default && int(slices.Max(b.Table)) >= queues {
		left = fmt.Sprintf("the indirection table had queue %d, and there are %d by now: it is the driver's own",
			slices.Max(b.Table), queues)
	}
	if b.Default || left != "" {
		table = nil
	}
	if err := c.SetTable(table); err != nil {
		return left, fmt.Errorf("the indirection table: %w", err)
	}
	return left, nil
}

// deleteAdded deletes the rules that were added.
func (b *before) deleteAdded(c Classifier) error {
	if !b.Ruled {
		return nil
	}
	rules, err := c.Rules()
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil // the driver has none any more
	}
	if err != nil {
		return fmt.Errorf("reading the rules: %w", err)
	}
	for place, r := range rules {
		if !b.adds(place, r) {
			continue
		}
		if err := c.Delete(place); err != nil {
			return fmt.Errorf("deleting rule %d: %w", place, err)
		}
	}
	return nil
}

// adds reports whether the rule at a place is one that was added.
func (b *before) adds(place uint32, r Rule) bool {
	return slices.Contains(b.Added, r) && !slices.Contains(b.Places, place)
}

// added are the rules that were added, and are there.
func (b *before) added(c Classifier) (list []Rule, err error) {
	if !b.Ruled {
		return nil, nil
	}
	rules, err := c.Rules()
	for place, r := range rules {
		if b.adds(place, r) {
			list = append(list, r)
		}
	}
	return list, err
}

// holds reports whether the table is as it was set.
func (b *before) holds(c Classifier) bool {
	if len(b.Set) == 0 {
		return false
	}
	now, err := c.Table()
	return err == nil && slices.Equal(now, b.Set)
}
