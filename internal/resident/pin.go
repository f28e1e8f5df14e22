// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// state names the maps that have what must outlive a process. What lies in them changes
// only together with the version below.
var state = []string{executorMapSessions, executorMapPlaces, executorMapAnswers, executorMapRegions,
	executorMapMemories}

// version is that of the state: the name of the folder that it is pinned in. A program
// never runs on state of another version.
const version = "v3"

// Pin keeps the state in a folder of a BPF file system (bpffs), so that it outlives this
// process: Adopt finds it there, with what n says of the node. The folder is made if need
// be, and must not have a state.
func (x *Executor) Pin(folder string, n Node) error {
	at := filepath.Join(folder, version)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("resident: %w", err)
	}
	if err := os.Mkdir(at, 0o700); err != nil {
		return fmt.Errorf("resident: pinning the state: %w; adopt or remove what is there", err)
	}
	if err := x.pin(at, n); err != nil {
		return errors.Join(err, Remove(folder))
	}
	return nil
}

func (x *Executor) pin(at string, n Node) error {
	for _, name := range state {
		if err := x.mapOf(name).Pin(filepath.Join(at, name)); err != nil {
			return fmt.Errorf(
				"resident: pinning %s: %w; the folder has to be of a BPF file system: `mount -t bpf bpf /sys/fs/bpf`",
				name, err)
		}
	}
	b, err := x.newBook(at)
	if err != nil {
		return err
	}
	n.Salt = x.salt
	if err := b.writeNode(&n); err != nil {
		return errors.Join(err, b.close())
	}
	x.book, x.node = b, n
	return nil
}

// Adopt loads the program of this version of the software for the state in a folder,
// whose process has died: its sessions and regions go on. cfg.Sessions and cfg.Regions
// are not looked at. The error matches fs.ErrNotExist if there is no state.
//
// Early frames that the process held come again. A session in which it was executing a
// frame by itself is ended: it is unknown whether that frame ran.
//
// The former program works on the same state until the new one takes its place
// (bpf.Program.SetExecutor): two versions may run at a time.
func Adopt(folder string, cfg Config) (*Executor, error) {
	at := filepath.Join(folder, version)
	open := pinnedIn(at)
	b, err := openBook(at, open)
	if err != nil {
		return nil, err
	}
	n, err := b.readNode()
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	x, err := loadOver(open, cfg)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resident: the state in %s: %w", folder, err), b.close())
	}
	x.book, x.node, x.salt = b, n, n.Salt
	err = each(b, namesMap, func(key uint64) { x.names[key] = b.nameOf(key) })
	if err == nil {
		err = x.settle()
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// opener opens a map that another process left, by its name.
type opener func(name string) (*ebpf.Map, error)

// pinnedIn opens maps that are pinned in a folder.
func pinnedIn(at string) opener {
	return func(name string) (*ebpf.Map, error) { return ebpf.LoadPinnedMap(filepath.Join(at, name), nil) }
}

// loadOver loads the program over a state that another process left.
func loadOver(open opener, cfg Config) (*Executor, error) {
	spec, err := object()
	if err != nil {
		return nil, err
	}
	maps := cfg.shared(spec)
	for _, name := range state {
		m, err := open(name)
		if err != nil {
			return nil, fmt.Errorf("map %s: %w", name, err)
		}
		defer m.Close()
		spec.Maps[name].MaxEntries = m.MaxEntries()
		maps[name] = m
	}
	return load(spec, maps)
}

// settle ends what the process that died has left half done.
func (x *Executor) settle() error {
	c := newCaller(x.objects.XdpfabCall)
	var id, place uint32
	all := x.objects.Places.Iterate()
	for all.Next(&id, &place) {
		s, err := x.state(place)
		if err == nil && s.Claimed != 0 {
			_, _, err = c.call(callEnd, id, 0, nil)
		}
		if err == nil && s.Attended != 0 {
			_, _, err = c.call(callAttend, id, 0, nil)
		}
		if err != nil {
			return err
		}
	}
	if err := all.Err(); err != nil {
		return fmt.Errorf("resident: reading the sessions: %w", err)
	}
	return nil
}

// Remove takes the state out of a folder. It ends with the last process or program that
// has it.
func Remove(folder string) error {
	if err := os.RemoveAll(filepath.Join(folder, version)); err != nil {
		return fmt.Errorf("resident: removing the state: %w", err)
	}
	return nil
}

// mapOf returns the map of a name.
func (x *Executor) mapOf(name string) *ebpf.Map {
	m := &x.objects.executorMaps
	return map[string]*ebpf.Map{
		executorMapSessions: m.Sessions, executorMapPlaces: m.Places, executorMapAnswers: m.Answers,
		executorMapRegions: m.Regions, executorMapMemories: m.Memories,
	}[name]
}
