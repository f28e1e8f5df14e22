// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// BusyDeferral is how the interrupts of a queue are held back whose poller polls it
// itself. Flush is as long as an idle poller spins: a poller that stays away longer, for
// it works, or sleeps, leaves the queue to the kernel, so that is how late a packet can
// be at most. After twice that time without one there are interrupts again.
var BusyDeferral = Deferral{Polls: 2, Flush: 50_000}

// DeferSuffix ends the names of the files of Deferrals.
const DeferSuffix = ".napi"

// Deferrals are the interrupts of queues that are held back. A file says what was before,
// from before the first change on until the last one is undone: so the next process can
// undo it after kill -9.
type Deferrals struct {
	n    NAPIs
	path string
}

// deferred is the file.
type deferred struct {
	Interface string         `json:"interface"`
	NIC       Identity       `json:"nic"`
	Set       Deferral       `json:"set"`
	Was       []deferralOf   `json:"was"`
	ids       map[uint32]int // to Was
}

// deferralOf is what a queue had.
type deferralOf struct {
	Queue int      `json:"queue"`
	Had   Deferral `json:"had"`
}

// Defer holds the interrupts of queues 0 to queues-1 of an interface back, after what a
// former process may have left was undone. If it cannot, nothing is changed.
func Defer(n NAPIs, path string, i *Interface, queues int, d Deferral) (*Deferrals, error) {
	if err := Undefer(n, path, i); err != nil {
		return nil, err
	}
	f := &deferred{Interface: i.Name, NIC: IdentityOf(i), Set: d, ids: map[uint32]int{}}
	for queue := range queues {
		id, err := n.Of(i.Index, queue)
		if err != nil {
			return nil, err
		}
		if _, shared := f.ids[id]; shared {
			continue
		}
		had, err := n.Deferral(id)
		if err != nil {
			return nil, fmt.Errorf("queue %d: %w", queue, err)
		}
		f.ids[id] = len(f.Was)
		f.Was = append(f.Was, deferralOf{queue, had})
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), writeOwn(path, f)); err != nil {
		return nil, fmt.Errorf("remembering what was there: %w", err)
	}
	for id := range f.ids {
		if err := f.set(n, id); err != nil {
			return nil, errors.Join(err, Undefer(n, path, i))
		}
	}
	return &Deferrals{n, path}, nil
}

// set makes one change, and looks whether it was made.
func (f *deferred) set(n NAPIs, id uint32) error {
	queue := f.Was[f.ids[id]].Queue
	if err := n.Defer(id, f.Set); err != nil {
		return fmt.Errorf("queue %d: %w", queue, err)
	}
	now, err := n.Deferral(id)
	switch {
	case err != nil:
		return fmt.Errorf("queue %d: reading what was set: %w", queue, err)
	case now != f.Set:
		return fmt.Errorf("queue %d: the driver took defer_hard_irqs %d and gro_flush_timeout %d, and has %d and %d",
			queue, f.Set.Polls, f.Set.Flush, now.Polls, now.Flush)
	}
	return nil
}

// Undo puts everything back as it was.
func (d *Deferrals) Undo(i *Interface) error { return Undefer(d.n, d.path, i) }

// Undefer undoes what a process has left that held interrupts back, if there was one: by
// the file at path, whichever interface of the calling thread's network namespace that is
// about by now, and by files next to it that are about this interface under another name.
// What somebody has changed since is left as it is, and so is what a driver has that has
// made its queues anew.
func Undefer(n NAPIs, path string, i *Interface) error {
	own := IdentityOf(i)
	switch f, err := loadDeferred(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("how interrupts were held back before: %w; remove the file %s when they are as you "+
			"want them", err, path)
	case f.NIC.is(&own):
		if err := f.undo(n, path, i); err != nil {
			return err
		}
	default:
		if err := f.undoElsewhere(n, path); err != nil {
			return err
		}
	}
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+DeferSuffix))
	for _, p := range beside {
		if f, err := loadDeferred(p); p == path || err != nil || !f.NIC.is(&own) {
			continue
		} else if err := f.undo(n, p, i); err != nil {
			return err
		}
	}
	return nil
}

func loadDeferred(path string) (*deferred, error) {
	text, err := readOwn(path)
	if err != nil {
		return nil, err
	}
	f := &deferred{}
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("%s: damaged: %w", path, err)
	}
	return f, nil
}

// undoElsewhere is undo for the interface of the file, which has another name by now. If
// it is not here any more, its queues went with it.
func (f *deferred) undoElsewhere(n NAPIs, path string) error {
	all, err := List()
	if err != nil {
		return err
	}
	for _, i := range all {
		if at := IdentityOf(&i); f.NIC.is(&at) {
			return f.undo(n, path, &i)
		}
	}
	return os.Remove(path)
}

// undo lets the interrupts of an interface in, and removes the file.
func (f *deferred) undo(n NAPIs, path string, i *Interface) error {
	for _, w := range f.Was {
		if err := f.restore(n, i.Index, w); err != nil {
			return fmt.Errorf("%s: queue %d: interrupts are still held back: %w", i.Name, w.Queue, err)
		}
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return nil
}

func (f *deferred) restore(n NAPIs, ifindex int, w deferralOf) error {
	id, err := n.Of(ifindex, w.Queue)
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP):
		return nil // there is no such queue any more
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("the interface is down; the next process that opens it lets them in: %w", err)
	case err != nil:
		return err
	}
	switch now, err := n.Deferral(id); {
	case err != nil:
		return err
	case now != f.Set:
		return nil
	}
	return n.Defer(id, w.Had)
}
