// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Limits of what an Executor can hold, and of the frames that it takes.
const (
	MaxSessions = 1 << 14
	MaxRegions  = 1 << 12
	// MaxFrame is the longest frame, in bytes, that a resident session can have.
	MaxFrame = 2048

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
}

// Executor is the program and its maps. Its methods may be called by several goroutines.
type Executor struct {
	objects struct {
		executorPrograms
		executorMaps
	}
	sessions []byte // the map of that name

	mu     sync.Mutex
	free   []uint32 // places for sessions
	places []uint32 // free places for the memory of regions
}

// Load puts the program and its maps into the kernel. Nothing runs it yet.
//
// An old kernel refuses it: the error wraps ErrKernel, and says why.
func Load(cfg Config) (*Executor, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	spec, err := loadExecutor()
	if err != nil {
		return nil, fmt.Errorf("resident: embedded object: %w", err)
	}
	if err := spec.Variables[executorVarCrcTable].Set(crcTable()); err != nil {
		return nil, fmt.Errorf("resident: writing the table of the checksum: %w", err)
	}
	for _, name := range []string{executorMapSessions, executorMapPlaces} {
		spec.Maps[name].MaxEntries = uint32(cfg.Sessions)
	}
	spec.Maps[executorMapAnswers].MaxEntries = uint32(cfg.Sessions * window)
	for _, name := range []string{executorMapRegions, executorMapMemories} {
		spec.Maps[name].MaxEntries = uint32(cfg.Regions)
	}
	opts := ebpf.CollectionOptions{}
	if cfg.Sockets != nil {
		spec.Maps[executorMapSockets].MaxEntries = cfg.Sockets.MaxEntries()
		opts.MapReplacements = map[string]*ebpf.Map{executorMapSockets: cfg.Sockets, executorMapCounters: cfg.Counters}
	}
	x := &Executor{}
	if err := spec.LoadAndAssign(&x.objects, &opts); err != nil {
		return nil, refused(err)
	}
	if x.sessions, err = mapAll(x.objects.Sessions); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	for i := range cfg.Sessions {
		x.free = append(x.free, uint32(i))
	}
	for i := range cfg.Regions {
		x.places = append(x.places, uint32(i))
	}
	return x, nil
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
	var err error
	if x.sessions != nil {
		err, x.sessions = unix.Munmap(x.sessions), nil
	}
	return errors.Join(err, x.objects.executorPrograms.Close(), x.objects.executorMaps.Close())
}

// mapAll maps an array to be read.
func mapAll(m *ebpf.Map) ([]byte, error) {
	data, err := unix.Mmap(m.FD(), 0, int(m.MaxEntries()*m.ValueSize()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("resident: mapping %v: %w", m, err)
	}
	return data, nil
}
