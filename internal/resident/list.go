// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/xdpfab/xdpfab/bpf"
)

// Left describes a folder with a state, for people who look for those that dead processes
// have left.
type Left struct {
	Folder    string   `json:"folder"`
	InUse     bool     `json:"in_use"` // a process has it
	Whole     bool     `json:"whole"`  // the kernel serves it
	Ended     bool     `json:"ended"`  // its interface is gone, and the next process there discards it
	Interface string   `json:"interface,omitempty"`
	Regions   []string `json:"regions"` // their names

	// Registered is what sessions can reach, without places and incarnations.
	Registered []Region `json:"-"`

	// Sizes are those of the memories, in bytes, by the names under which NewMemory finds
	// them. A process that died in the middle may have left several of one name.
	Sizes    map[string][]int `json:"-"`
	Sessions int              `json:"sessions"`
	Trouble  string           `json:"trouble,omitempty"` // why no more is known
	Node     Node             `json:"-"`                 // whose it is
}

// State is where the state is pinned.
func (l *Left) State() string { return filepath.Join(l.Folder, version) }

// List returns the folders below a path that have a state, of any version.
func List(root string) (all []Left, err error) {
	if err := onBPF(root); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has just been removed
		}
		if err != nil || !e.IsDir() {
			return err
		}
		if !isState(path) {
			return nil
		}
		all = append(all, look(filepath.Dir(path), e.Name()))
		return fs.SkipDir
	})
	if err != nil {
		return nil, fmt.Errorf("resident: looking below %s: %w", root, err)
	}
	return all, nil
}

// isState reports whether a folder is a state: it has the name of a version, and is not
// that of an interface with such a name, which has states in it.
func isState(path string) bool {
	if !stateName(filepath.Base(path)) {
		return false
	}
	entries, err := os.ReadDir(path)
	return err != nil || !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() && stateName(e.Name())
	})
}

// stateName reports whether a folder has the name of a version: v and digits.
func stateName(s string) bool {
	if len(s) < 2 || s[0] != 'v' {
		return false
	}
	for _, c := range s[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func look(folder, state string) Left {
	l := Left{Folder: folder, Regions: []string{}, Sizes: map[string][]int{}, Whole: (&Folder{path: folder}).Whole()}
	if f, err := lockFolder(folder); err == nil {
		_ = f.Close()
	} else {
		l.InUse = errors.Is(err, ErrOwned)
	}
	if errors.Is(bpf.Fits(filepath.Join(folder, state), 0, 0), bpf.ErrEnded) {
		l.Ended, l.Whole = true, false
	}
	if state != version {
		l.Trouble = "its state is of version " + state + ", and this software has " + version
		return l
	}
	if err := l.read(filepath.Join(folder, version)); err != nil {
		l.Trouble = err.Error()
	}
	return l
}

func (l *Left) read(at string) error {
	b, err := openBook(at, pinnedIn(at))
	if err != nil {
		return err
	}
	defer b.close()
	n, err := b.readNode()
	if err != nil {
		return err
	}
	l.Interface, l.Node = n.Interface, n
	places, err := ebpf.LoadPinnedMap(filepath.Join(at, executorMapPlaces), &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("resident: %w", err)
	}
	defer places.Close()
	var id, place uint32
	for it := places.Iterate(); it.Next(&id, &place); {
		l.Sessions++
	}
	regions, err := ebpf.LoadPinnedMap(filepath.Join(at, executorMapRegions), &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("resident: %w", err)
	}
	defer regions.Close()
	var key uint64
	var r executorRegion
	all := regions.Iterate()
	for all.Next(&key, &r) {
		n := b.nameOf(key)
		l.Regions = append(l.Regions, n.Name)
		l.Registered = append(l.Registered, Region{Key: key, Length: int(r.Length), Base: r.Base, Auth: r.Auth,
			Access: r.Access, Name: n})
	}
	slices.Sort(l.Regions)
	if err := all.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(at)
	for _, e := range entries {
		if name, size, is := pinnedMemory(e.Name()); is {
			l.Sizes[name] = append(l.Sizes[name], size)
		}
	}
	return err
}

// pinnedMemory takes the name of a pin apart; it reports whether that is a memory's.
func pinnedMemory(pin string) (name string, size int, is bool) {
	var hex []byte
	n, err := fmt.Sscanf(pin, memoryPin+"%d-%x", &size, &hex)
	return string(hex), size, err == nil && n == 2
}
