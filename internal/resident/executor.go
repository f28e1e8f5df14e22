// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/session"
)

// Of resident sessions and their frames.
const (
	window     = 64 // frames, and answers kept, of a session
	headerLen  = 34
	maxPayload = MaxFrame - headerLen
)

// Config sizes an Executor. Zero values mean the defaults, which are in parentheses.
type Config struct {
	Sessions int // that there can be at a time (256); each takes 130 KiB
	Regions  int // that can be registered at a time (256)
	// Sockets is the map of the sockets that frames for user space are redirected to, and
	// Counters that of the packets by reason: those of bpf.Program.Shared. Nil means maps
	// of its own.
	Sockets, Counters *ebpf.Map
	// Frags has to be that of the bpf.Config: the kernel lets a program call only one of
	// its own kind.
	Frags bool
}

// Executor is the program and its maps. Its methods may be called by several goroutines.
type Executor struct {
	objects struct {
		executorPrograms
		executorMaps
	}
	sessions []byte      // the map of that name
	touches  []byte      // likewise
	book     *book       // nil unless the state is pinned
	node     Node        // as written down there
	salt     []byte      // of Digest
	onLoss   func()      // nil for none
	onStuck  func(error) // nil for none
	stuck    sync.Once   // onStuck has been called

	mu       sync.Mutex
	free     []uint32            // places for sessions
	places   []uint32            // free places for the memory of regions
	memories []*Memory           // that NewMemory has returned
	handed   []*Memory           // those of another process that it may return, until Sweep: see TakeOver
	swept    bool                // nothing of the process before is left here
	names    map[uint64]Name     // of regions, by key
	counting map[uint64]*Count   // likewise
	adopted  map[uint32]struct{} // ids of sessions that were taken over
	seated
	counts
}

// Capacity is how many sessions there can be at a time.
func (x *Executor) Capacity() int { return int(x.objects.Sessions.MaxEntries()) }

// Load puts the program and its maps into the kernel. Nothing runs it yet.
//
// An old kernel refuses it: the error wraps ErrKernel, and says why.
func Load(cfg Config) (*Executor, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	spec, err := object()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{executorMapSessions, executorMapPlaces} {
		spec.Maps[name].MaxEntries = uint32(cfg.Sessions)
	}
	spec.Maps[executorMapAnswers].MaxEntries = uint32(cfg.Sessions * window)
	for _, name := range []string{executorMapRegions, executorMapMemories} {
		spec.Maps[name].MaxEntries = uint32(cfg.Regions)
	}
	return load(spec, cfg.shared(spec))
}

// object returns the program and its maps as they are compiled.
func object() (*ebpf.CollectionSpec, error) {
	spec, err := loadExecutor()
	if err != nil {
		return nil, fmt.Errorf("resident: embedded object: %w", err)
	}
	if err := spec.Variables[executorVarCrcTable].Set(crcTable()); err != nil {
		return nil, fmt.Errorf("resident: writing the table of the checksum: %w", err)
	}
	return spec, nil
}

// shared returns the maps that others have made, by name, and has the object fit them and
// the program that calls it.
func (c *Config) shared(spec *ebpf.CollectionSpec) map[string]*ebpf.Map {
	if c.Frags {
		spec.Programs["xdpfab_execute"].Flags |= unix.BPF_F_XDP_HAS_FRAGS
	}
	if c.Sockets == nil {
		return map[string]*ebpf.Map{}
	}
	spec.Maps[executorMapSockets].MaxEntries = c.Sockets.MaxEntries()
	return map[string]*ebpf.Map{executorMapSockets: c.Sockets, executorMapCounters: c.Counters}
}

// load puts an object into the kernel, with these maps in place of its own.
func load(spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) (*Executor, error) {
	x := &Executor{salt: newSalt(), names: map[uint64]Name{}, counting: map[uint64]*Count{},
		adopted: map[uint32]struct{}{}}
	spec.Maps[executorMapTouches].MaxEntries = spec.Maps[executorMapMemories].MaxEntries
	spec.Maps[executorMapEvents].MaxEntries = uint32(os.Getpagesize())
	err := spec.LoadAndAssign(&x.objects, &ebpf.CollectionOptions{MapReplacements: maps})
	if err != nil {
		return nil, refused(err)
	}
	x.sessions, err = mapAll(x.objects.Sessions, unix.PROT_READ)
	if err == nil {
		x.touches, err = mapAll(x.objects.Touches, unix.PROT_READ|unix.PROT_WRITE)
	}
	if err == nil {
		err = x.findPlaces()
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// findPlaces records which places no session and no region has.
func (x *Executor) findPlaces() error {
	var id, place uint32
	taken := map[uint32]struct{}{}
	all := x.objects.Places.Iterate()
	for all.Next(&id, &place) {
		taken[place] = struct{}{}
	}
	n := x.objects.Sessions.MaxEntries()
	x.free, x.fewest, x.parties, x.live = others(taken, n), int(n/8), map[session.Party]int{}, map[uint32]*Session{}
	for place := range taken {
		x.live[place] = nil
		x.gone -= viewAt(x.sessions, place).ops() // what it has executed for a former process is not counted
	}
	var key uint64
	var r executorRegion
	taken = map[uint32]struct{}{}
	each := x.objects.Regions.Iterate()
	for each.Next(&key, &r) {
		taken[r.Place] = struct{}{}
	}
	x.places = others(taken, x.objects.Memories.MaxEntries())
	if err := errors.Join(all.Err(), each.Err()); err != nil {
		return fmt.Errorf("resident: reading what there is: %w", err)
	}
	return nil
}

// others returns the places below n that are not taken.
func others(taken map[uint32]struct{}, n uint32) (free []uint32) {
	for place := range n {
		if _, is := taken[place]; !is {
			free = append(free, place)
		}
	}
	return free
}

// check puts defaults in place of zeros, and refuses what cannot be.
func (c *Config) check() error {
	if c.Sessions == 0 {
		c.Sessions = 256
	}
	if c.Regions == 0 {
		c.Regions = 256
	}
	switch {
	case c.Sessions < 1 || c.Sessions > MaxSessions:
		return fmt.Errorf("%w: %d sessions; want 1 to %d", ErrConfig, c.Sessions, MaxSessions)
	case c.Regions < 1 || c.Regions > MaxRegions:
		return fmt.Errorf("%w: %d regions; want 1 to %d", ErrConfig, c.Regions, MaxRegions)
	}
	return nil
}

// Program is what runs for each packet that would be redirected to a socket.
func (x *Executor) Program() *ebpf.Program { return x.objects.XdpfabExecute }

// Close gives up the program and the maps, which last as long as others have them.
func (x *Executor) Close() error {
	x.mu.Lock()
	for key := range x.counting {
		x.discount(key)
	}
	x.mu.Unlock()
	err := errors.Join(unmap(&x.sessions), unmap(&x.touches))
	for _, m := range x.handed {
		err = errors.Join(err, m.Close())
	}
	x.handed = nil
	return errors.Join(err, x.book.close(), x.objects.executorPrograms.Close(), x.objects.executorMaps.Close())
}

// mapAll maps an array.
func mapAll(m *ebpf.Map, rights int) ([]byte, error) {
	data, err := unix.Mmap(m.FD(), 0, int(m.MaxEntries()*m.ValueSize()), rights, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("resident: mapping %v: %w", m, err)
	}
	return data, nil
}

// unmap undoes mapAll, if it was done.
func unmap(b *[]byte) (err error) {
	if *b != nil {
		err, *b = unix.Munmap(*b), nil
	}
	return err
}
