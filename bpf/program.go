// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// The C enum and the Go one have the same length, or this does not compile.
var _ = [1]struct{}{}[NumReasons-Reason(steerReasonNUM_REASONS)]

// Program is the steering program in the kernel. Its methods may be called from
// several goroutines; none is for the data path. Keep it reachable and Close it:
// a collected Program is detached.
type Program struct {
	queues  int
	udp     bool
	execute bool
	frags   bool
	id      uint32

	mu      sync.Mutex // guards all fields below
	objects struct {
		steerPrograms
		steerMaps
	}
	addrs  map[address]struct{} // that are served
	macs   map[macKey]struct{}  // besides the interface's own
	link   link.Link            // nil: not attached
	mode   Mode                 // of link
	pinned string               // path of link; empty: it ends with Close
	stays  bool                 // another process has it, or may have it again: see Leave
	closed bool
}

// Load puts the program into the kernel, with room for sockets on the given
// number of receive queues (1 to MaxReceiveQueues). Nothing is attached yet.
//
// Without CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN it fails with an error that names
// what is missing and for which errors.Is(err, fs.ErrPermission) holds.
func Load(cfg Config, queues int) (*Program, error) { return loadWith(cfg, queues, nil) }

// loadWith is Load with options for the kernel objects.
func loadWith(cfg Config, queues int, o *ebpf.CollectionOptions) (*Program, error) {
	if queues < 1 || queues > MaxReceiveQueues {
		return nil, fmt.Errorf("bpf: %w: %d receive queues, want 1 to %d; reduce them with `ethtool -L … combined %d`",
			ErrConfig, queues, MaxReceiveQueues, MaxReceiveQueues)
	}
	settings, err := cfg.settings()
	if err != nil {
		return nil, err
	}
	spec, err := loadSteer()
	if err != nil {
		return nil, fmt.Errorf("bpf: embedded object: %w", err)
	}
	if err := spec.Variables[steerVarConfig].Set(settings); err != nil {
		return nil, fmt.Errorf("bpf: writing the configuration: %w", err)
	}
	spec.Maps[steerMapSockets].MaxEntries = uint32(queues * Lanes)
	if cfg.Frags {
		for _, p := range spec.Programs {
			p.Flags |= unix.BPF_F_XDP_HAS_FRAGS
		}
	}

	p := &Program{queues: queues, udp: cfg.UDP, execute: cfg.Execute,
		frags: cfg.Frags, addrs: map[address]struct{}{}, macs: map[macKey]struct{}{}}
	if err := spec.LoadAndAssign(&p.objects, o); err != nil {
		return nil, explain("loading the XDP program", err)
	}
	info, err := p.objects.XdpfabSteer.Info()
	if err != nil {
		return nil, errors.Join(explain("reading the program's id", err), p.Close())
	}
	id, _ := info.ID() // exists since Linux 4.13
	p.id = uint32(id)
	if cfg.UDP {
		if err := p.SetAddrs(cfg.Addrs); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// ID is the kernel's id of the program, as bpftool shows it.
func (p *Program) ID() uint32 { return p.id }

// Frags reports whether the program takes packets in several buffers: see Config.Frags.
// Its executor then has to be loaded for them, too.
func (p *Program) Frags() bool { return p.frags }

// slot is the index of a socket in the XSKMAP.
func (p *Program) slot(queue, lane int) (uint32, error) {
	if queue < 0 || queue >= p.queues || lane < 0 || lane >= Lanes {
		return 0, fmt.Errorf("bpf: %w: no slot for queue %d, lane %d: there are %d queues of %d lanes",
			ErrConfig, queue, lane, p.queues, Lanes)
	}
	return uint32(queue*Lanes + lane), nil
}

// SetSocket makes the AF_XDP socket fd the receiver of the frames that arrive on
// a queue for a lane, in place of the one before. The socket needs its RX and
// fill ring; it must be bound to this queue of the interface, or the kernel
// drops the frames redirected to it. The entry ends with the socket.
func (p *Program) SetSocket(queue, lane, fd int) error {
	return p.update(queue, lane, func(m *ebpf.Map, slot uint32) error {
		if fd < 0 {
			return unix.EBADF
		}
		err := m.Put(slot, uint32(fd))
		if errors.Is(err, unix.ENOBUFS) { // Linux 7.2
			return fmt.Errorf("fd %d is a socket without an RX ring, which cannot receive: %w", fd, err)
		}
		if errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("fd %d is not an AF_XDP socket (before its rings are made it may not count): %w", fd, err)
		}
		return err
	})
}

// ClearSocket empties a slot: its frames are dropped again (DropNoSocket).
// Clearing an empty slot is no error.
func (p *Program) ClearSocket(queue, lane int) error {
	return p.update(queue, lane, func(m *ebpf.Map, slot uint32) error {
		return m.Delete(slot)
	})
}

func (p *Program) update(queue, lane int, f func(*ebpf.Map, uint32) error) error {
	slot, err := p.slot(queue, lane)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if err := f(p.objects.Sockets, slot); err != nil {
		return fmt.Errorf("bpf: socket of queue %d, lane %d: %w", queue, lane, err)
	}
	return nil
}

// Counters returns how many packets were decided by each Reason since Load,
// summed over the CPUs. They only grow. While packets arrive, the numbers are
// not of the same instant.
func (p *Program) Counters() (sums [NumReasons]uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return sums, ErrClosed
	}
	var perCPU []uint64
	for r := range NumReasons {
		if err := p.objects.Counters.Lookup(uint32(r), &perCPU); err != nil {
			return sums, fmt.Errorf("bpf: counter %v: %w", r, err)
		}
		for _, n := range perCPU {
			sums[r] += n
		}
	}
	return sums, nil
}

// Close detaches the program, unless it is pinned or left, and frees it and its maps.
// It is idempotent; other methods then return ErrClosed.
func (p *Program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	var err error
	switch {
	case p.link != nil && (p.pinned != "" || p.stays):
		err = p.link.Close()
	case p.link != nil:
		err = detach(p.link)
	}
	return errors.Join(err, p.objects.steerPrograms.Close(), p.objects.steerMaps.Close())
}

// Shared returns the maps that an executor redirects by and counts in: the sockets, by
// queue and lane, and the packets by Reason. They belong to the Program.
func (p *Program) Shared() (sockets, counters *ebpf.Map) {
	return p.objects.Sockets, p.objects.Counters
}

// SetExecutor has an XDP program called for each request, ack and probe that would be
// redirected to a socket, in place of the one before; nil for none. It has to redirect by
// itself what it does not deal with, and to count each packet: see Shared. Without
// Config.Execute it is an error.
func (p *Program) SetExecutor(x *ebpf.Program) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case !p.execute:
		return fmt.Errorf("bpf: %w: an executor for a program that calls none; set Config.Execute", ErrConfig)
	case x == nil:
		if err := p.objects.Executors.Delete(uint32(0)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("bpf: removing the executor: %w", err)
		}
		return nil
	}
	if err := p.objects.Executors.Put(uint32(0), x); err != nil {
		return fmt.Errorf("bpf: setting the executor: %w", err)
	}
	return nil
}
