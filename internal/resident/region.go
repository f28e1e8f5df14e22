// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Rights that a region grants, as in mr.Access.
const (
	RemoteRead  = 1 << 0
	RemoteWrite = 1 << 1
)

const (
	wordLen  = 8       // bytes
	blockLen = 4 << 10 // bytes of an entry of a memory map
	// MaxMemory is the largest memory of a region, in bytes.
	MaxMemory = 8 << 30
)

// Memory is memory in a map, which the program works on and a process can map.
type Memory struct {
	name  string // by which the next process finds it
	path  string // where it is pinned, if it is
	found bool   // a former process has left it
	m     *ebpf.Map
	data  []byte
}

// NewMemory makes zeroed memory of so many bytes and maps it. The name is for bpftool, at
// most 15 bytes of it.
func NewMemory(name string, size int) (*Memory, error) {
	if size < 1 || size > MaxMemory {
		return nil, fmt.Errorf("%w: memory of %d bytes; want 1 to %d", ErrConfig, size, MaxMemory)
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: mapName(name), Type: ebpf.Array, KeySize: 4, ValueSize: blockLen,
		MaxEntries: uint32((size + blockLen - 1) / blockLen), Flags: unix.BPF_F_MMAPABLE | unix.BPF_F_INNER_MAP,
	})
	if err != nil {
		return nil, fmt.Errorf("resident: memory of %d bytes: %w; check the memory that is free", size, err)
	}
	return mapOwn(m, size)
}

// mapMemory maps the first size bytes of a memory map.
func mapMemory(m *ebpf.Map, size int) (*Memory, error) {
	if have := int64(m.MaxEntries()) * blockLen; int64(size) > have {
		return nil, fmt.Errorf("%w: a memory of %d bytes is to be mapped as one of %d", ErrConfig, have, size)
	}
	data, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("resident: mapping a memory of %d bytes: %w", size, err)
	}
	return &Memory{m: m, data: data}, nil
}

// mapOwn is mapMemory that closes the map if there is an error.
func mapOwn(m *ebpf.Map, size int) (*Memory, error) {
	mem, err := mapMemory(m, size)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return mem, nil
}

// Name is the name by which the next process finds the memory.
func (m *Memory) Name() string { return m.name }

// Found reports whether a former process left the memory.
func (m *Memory) Found() bool { return m.found }

// Bytes returns the memory. Peers change it by atomic instructions, so its owner must use
// sync/atomic.
func (m *Memory) Bytes() []byte { return m.data }

// Close unmaps the memory and gives it up. It lasts as long as a region has it.
func (m *Memory) Close() error {
	data := m.data
	m.data = nil
	return errors.Join(unix.Munmap(data), m.m.Close())
}

// mapName makes a name that the kernel takes for a map: letters, digits, '_' and '.'.
func mapName(name string) string {
	b := []byte(name)
	for i, c := range b {
		if !(c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			b[i] = '_'
		}
	}
	return string(b[:min(len(b), unix.BPF_OBJ_NAME_LEN-1)])
}

// Region describes the registration of a memory.
type Region struct {
	Key         uint64
	Length      int    // bytes, from the beginning of the memory
	Base        uint64 // what peers give for the first byte, a multiple of 8
	Auth        uint64 // of the authorization key that a session must have
	Incarnation uint32
	Access      uint32
	Name        Name // is written down if the state is pinned; Register fills Memory in
}

// Register lets sessions reach a memory.
func (x *Executor) Register(m *Memory, r Region) error {
	if r.Length < 1 || r.Length > len(m.data) || r.Base%wordLen != 0 || r.Access&^(RemoteRead|RemoteWrite) != 0 {
		return fmt.Errorf(
			"%w: a region of %d bytes from %#x on, rights %#x, over a memory of %d bytes; want it inside, from a "+
				"multiple of %d on", ErrConfig, r.Length, r.Base, r.Access, len(m.data), wordLen)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.register(m, &r)
}

// register is Register with x.mu held.
func (x *Executor) register(m *Memory, r *Region) error {
	switch err := x.objects.Regions.Lookup(r.Key, new(executorRegion)); {
	case err == nil:
		return fmt.Errorf("%w: %#x", ErrKeyInUse, r.Key)
	case !errors.Is(err, ebpf.ErrKeyNotExist):
		return fmt.Errorf("resident: key %#x: %w", r.Key, err)
	}
	n := len(x.places)
	if n == 0 {
		return fmt.Errorf("%w for another region; deregister one, or make room for more", ErrFull)
	}
	place := x.places[n-1]
	for _, step := range x.entering(m, r, place) {
		if err := step(); err != nil {
			_ = x.objects.Memories.Delete(place) // it fails if none is there
			x.dropName(r.Key)
			return err
		}
	}
	x.places = x.places[:n-1]
	return nil
}

// A process can die between any two steps of a registration, or of its end. So a region
// is entered last and removed first: where there is one, memory and name are its own.
// Sweep discards everything else that is found.

// entering returns the steps of a registration at a free place, of a key that has none.
func (x *Executor) entering(m *Memory, r *Region, place uint32) []func() error {
	return []func() error{
		func() error { return x.noteName(m, r) },
		func() error {
			if err := x.objects.Memories.Put(place, m.m); err != nil {
				return fmt.Errorf("resident: adding a memory: %w", err)
			}
			return nil
		},
		func() error {
			err := x.objects.Regions.Update(r.Key, executorRegion{
				Base: r.Base, Length: uint64(r.Length), Auth: r.Auth, Place: place, Incarnation: r.Incarnation,
				Access: r.Access,
			}, ebpf.UpdateNoExist)
			if err != nil {
				return fmt.Errorf("resident: adding key %#x: %w", r.Key, err)
			}
			return nil
		},
	}
}

// Deregister ends a registration: sessions find no such key from now on, and when
// Deregister returns nothing is executed on its memory.
func (x *Executor) Deregister(key uint64) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.deregister(key)
}

// deregister is Deregister with x.mu held.
func (x *Executor) deregister(key uint64) error {
	var r executorRegion
	if err := x.objects.Regions.Lookup(key, &r); err != nil {
		return fmt.Errorf("resident: key %#x: %w", key, err)
	}
	for _, step := range x.removing(key, r.Place) {
		if err := step(); err != nil {
			return err
		}
	}
	x.discount(key)
	x.places = append(x.places, r.Place)
	return nil
}

// removing returns the steps that end a registration.
func (x *Executor) removing(key uint64, place uint32) []func() error {
	return []func() error{
		func() error {
			if err := x.objects.Regions.Delete(key); err != nil {
				return fmt.Errorf("resident: removing key %#x: %w", key, err)
			}
			return nil
		},
		// The kernel waits here for the programs that run (map_in_map's promise of Linux
		// 4.19 and later), so they have left the memory.
		func() error {
			if err := x.objects.Memories.Delete(place); err != nil {
				return fmt.Errorf("resident: removing the memory of key %#x: %w", key, err)
			}
			return nil
		},
		func() error {
			x.dropName(key)
			return nil
		},
	}
}
