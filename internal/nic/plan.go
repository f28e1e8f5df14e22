// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/process"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

// Want describes how an interface is to be used. The zero value holds xdpfab's
// defaults.
type Want struct {
	Queues   int      // how many, from queue 0 on; 0 means DefaultQueues, or as many as there are
	Lend     int      // how many further ones are for other programs
	Chunks   int      // packet buffers of each queue; 0 means DefaultChunks
	Copy     xsk.Mode // Auto means zero-copy if the driver has it
	BusyPoll bool
	// XDP is Native or Generic to force it. Auto is Native, and on an interface that
	// stands for several others Generic; Any is Generic, too, where a native program
	// would be of no use.
	XDP  bpf.Mode
	VLAN bpf.VLANPolicy
}

// DefaultChunks is how many packet buffers a queue has, half of them to receive
// into and half to send from.
const DefaultChunks = 2 * xsk.DefaultRingSize

// DefaultQueues is how many queues of an interface are used at most unless a number is
// given. Each has a poller, which takes a core while it is busy, and 8 or 16 MiB of
// packet memory; one takes some million frames a second, which is 10 Gbit/s of full ones.
// A server may have a channel for each of its cores, and raw Ethernet comes on one of
// them.
const DefaultQueues = 4

// MaxQueues is how many queues of an interface can be used: a session's id names
// its queue.
const MaxQueues = wire.MaxQueues

// Plan describes how xdpfab would use an interface, and what prevents that.
type Plan struct {
	Usable bool   `json:"usable"` // by a process that has the privileges
	XDP    string `json:"xdp"`    // "native", "generic" or "unknown"
	Copy   string `json:"copy"`   // "zero-copy", "copy" or "unknown"
	Queues int    `json:"queues"` // that would be opened, without those to lend
	Chunk  int    `json:"chunk"`  // size of a packet buffer, bytes
	// Segments is how many buffers a packet to be sent may take, where the MTU is such
	// that packets lie in several; 0 where each lies in one.
	Segments int      `json:"segments"`
	Buffers  int      `json:"buffers"`  // of each queue
	Problems []string `json:"problems"` // each with its remedy; empty if usable
	Notes    []string `json:"notes"`
	VLAN     string   `json:"vlan"` // whose frames are taken, by their tags: "untagged", "any" or an id

	Bound  int      `json:"-"` // queues, with those to lend
	Mode   xsk.Mode `json:"-"` // to bind the queues with
	Attach bpf.Mode `json:"-"` // the program with: Native or Generic; Any if only the driver knows
	Reason string   `json:"-"` // of generic XDP; empty with native
	Tags   string   `json:"-"` // why VLAN may not hold, and the remedy; empty if it does
	Pinned uint64   `json:"-"` // packet memory of all queues, bytes

	of        Interface
	wanted    xsk.Mode // of Mode: what was asked for, or what generic XDP leaves
	refusals  []error  // the errors behind Problems
	privilege error    // the privileges that the caller lacks
}

// How says which XDP is used and whether packets are copied, as far as it is known before
// the program is attached.
func (p *Plan) How() string {
	if p.XDP == "unknown" {
		return "XDP, in a mode that is known once its program is attached"
	}
	return p.XDP + " XDP, " + p.Copy
}

// RingSize is how many entries the rings of a queue have, apart from Fill, which takes
// all buffers. RX holds as many packets as there are buffers to receive into, and with
// zero-copy half of them: so Fill has buffers left for the driver's ring, whatever waits
// in RX. A driver that finds too few may deliver packets again that it has delivered, in
// buffers that are in use (igb).
func (p *Plan) RingSize() int {
	if p.Copy == "zero-copy" {
		return p.Buffers / 4
	}
	return p.Buffers / 2
}

// Err returns every reason why the caller cannot open the interface, and nil if
// there is none. It matches the sentinels of packages xsk and bpf, ErrMTU and
// fs.ErrPermission.
func (p *Plan) Err() error {
	return errors.Join(append(p.refusals[:len(p.refusals):len(p.refusals)], p.privilege)...)
}

// Missing returns the privileges that the caller lacks to open the interface, or nil.
func (p *Plan) Missing() error { return p.privilege }

// Plan decides, from descriptions alone, whether and how an interface can be
// opened. It cannot tell what only the kernel knows: whether the driver accepts the
// program, and whether it binds a queue, with zero-copy if that is wanted.
func (s *System) Plan(i *Interface, w Want) Plan {
	p := Plan{XDP: "unknown", Copy: "unknown", Queues: w.Queues, Problems: []string{}, Notes: []string{},
		Attach: bpf.Native, VLAN: w.VLAN.String(), of: *i}
	useless := p.choose(i, &w)
	if p.Queues == 0 {
		p.Queues = max(min(i.RXQueues-w.Lend, DefaultQueues), 1)
	}
	p.Bound = p.Queues + w.Lend
	if w.Chunks == 0 {
		w.Chunks = DefaultChunks
	}
	p.Buffers = w.Chunks
	if p.Attach == bpf.Generic { // the kernel divides the packets, whatever the driver is
		p.of.generic, p.of.several = true, !kernel.Lacks(s.Kernel, kernel.MultiBuffer)
	}
	p.wanted = w.Copy
	f, unfit := fit(&p.of, p.wanted)
	p.Chunk, p.Segments, p.Mode = f.chunk, f.segments, f.mode
	p.Pinned = uint64(p.Bound) * uint64(w.Chunks) * uint64(p.Chunk)
	if i.Ethernet {
		p.refuse(s.tooOld(), s.cannotLend(w.Lend), i.down(), useless, unfit, i.unequal(),
			i.tooFew(p.Bound, w.lending()), i.tooMany(p.Bound), i.polled(w.BusyPoll, p.Attach == bpf.Generic),
			i.untold(w.VLAN),
			i.taken())
	} else {
		p.refuse(s.tooOld(), fmt.Errorf("%s is %w: want one with a MAC address", i.Name, ErrNotEthernet))
	}
	if p.privilege = s.lacking(p.Pinned); p.privilege != nil {
		p.note("%v", p.privilege)
	}
	p.predict(i)
	if p.Tags = i.MissesTags(w.VLAN); p.Tags != "" {
		p.note("%s", p.Tags)
	}
	if others := i.RXQueues - p.Bound; others > 0 {
		p.note("%d of the %d queues would be used: frames that arrive on the others are passed on with a copy, unless "+
			"the NIC steers them (xdpfabd --steer, or docs/tuning.md); --queues uses more", p.Queues, i.RXQueues)
	}
	p.Usable = len(p.refusals) == 0
	return p
}

// ErrNotEthernet means that an interface has no Ethernet frames. UDP sockets take none.
var ErrNotEthernet = errors.New("not an Ethernet interface")

// refuse records a reason to refuse the interface, unless it is nil.
func (p *Plan) refuse(reasons ...error) {
	for _, err := range reasons {
		if err != nil {
			p.refusals = append(p.refusals, err)
			p.Problems = append(p.Problems, strings.TrimPrefix(err.Error(), "bpf: "))
		}
	}
}

func (p *Plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// predict reports which modes the driver's features promise.
func (p *Plan) predict(i *Interface) {
	switch {
	case p.Attach == bpf.Generic, i.lacks() != nil:
		p.XDP, p.Copy = "generic", "copy"
	case !i.FeaturesKnown:
		p.note("the driver's XDP is only known when the program is attached (kernel < %v): `xdpfab info --probe %s` "+
			"does that for an instant", kernel.DriverFeatures, i.Name)
	case i.features&XDPZeroCopy == 0 || p.Mode == xsk.Copy:
		p.XDP, p.Copy = "native", "copy"
	case i.copies:
		p.XDP, p.Copy = "native", "copy"
		p.note("the driver has zero-copy, but not for this device: the hypervisor has to give it iommu_platform=on")
	default:
		p.XDP, p.Copy = "native", "zero-copy"
		p.note("the driver offers zero-copy, but not for every device (virtio-net: only with iommu_platform=on); "+
			"what a queue really gets is only known when it is bound: xdpfab info --probe %s", i.Name)
	}
}

func (s *System) tooOld() error {
	if !kernel.Lacks(s.Kernel, kernel.Oldest) {
		return nil
	}
	return fmt.Errorf("kernel is too old: Linux %s, want %v or newer: %w", s.Kernel, kernel.Oldest, xsk.ErrUnsupported)
}

func (i *Interface) down() error {
	if i.Up {
		return nil
	}
	return fmt.Errorf("%s: %w: %w: `ip link set dev %s up`", i.Name, xsk.ErrInterfaceDown, unix.ENETDOWN, i.Name)
}

func (i *Interface) unequal() error {
	if i.TXQueues >= i.RXQueues {
		return nil
	}
	return fmt.Errorf(
		"%s has %d receive queues and %d transmit queues; want as many of both: `ethtool -L %s rx %d tx %d`",
		i.Name, i.RXQueues, i.TXQueues, i.Name, i.TXQueues, i.TXQueues)
}

// tooFew refuses more queues than there are; what says more of those that were asked for.
func (i *Interface) tooFew(want int, what string) error {
	if want <= i.RXQueues {
		return nil
	}
	has := fmt.Sprintf("%d queues", i.RXQueues)
	if i.RXQueues == 1 {
		has = "1 queue"
	}
	return fmt.Errorf("%w: %s has %s, %d were asked for%s: want at most %d; `ethtool -l %s` shows how many it can have",
		xsk.ErrNoQueue, i.Name, has, want, what, i.RXQueues, i.Name)
}

func (i *Interface) tooMany(queues int) error {
	if queues <= MaxQueues || queues > i.RXQueues { // tooFew says that it does not have them
		return nil
	}
	return fmt.Errorf("%w: %s has %d queues, at most %d can be used: `%s`", xsk.ErrNoQueue, i.Name, queues, MaxQueues,
		i.SetQueues(MaxQueues))
}

func (i *Interface) polled(busily, generic bool) error {
	switch {
	case !busily:
		return nil
	case i.Driver == "veth":
		return fmt.Errorf("%s: busy polling makes veth ten times slower; want none (--busy-poll, DomainAttr.BusyPoll)",
			i.Name)
	case generic:
		return fmt.Errorf("%s: with busy polling the pollers run the driver, which hands frames to sockets with "+
			"native XDP alone: want native XDP, or none (--busy-poll, DomainAttr.BusyPoll)", i.Name)
	}
	return nil
}

func (i *Interface) taken() error {
	if i.Attached == nil || i.Attached.holder == nil {
		return nil
	}
	return Taken(i.Name, i.Attached.holder)
}

// ProgramName is what the kernel calls the program of package bpf.
const ProgramName = "xdpfab_steer"

// Taken makes an error of attaching the program say so if another xdpfab has the
// interface.
func Taken(ifname string, err error) error {
	if b := new(bpf.BusyError); errors.As(err, &b) && b.Name == ProgramName {
		return &takenError{ifname, b.LinkID, err}
	}
	return err
}

// Taker returns the process that has an interface, and the paths at which it listens, of
// an error that Taken has made; 0 if it is not known.
func Taker(err error) (pid int, sockets []string) {
	if t := new(takenError); errors.As(err, &t) {
		pid = process.HolderOf(t.link)
	}
	return pid, process.ListensAt(pid)
}

// Fewer adds to the error of a program that was attached to an interface with other
// queues the command that gives it those again.
func Fewer(ifname string, err error) error {
	if q := new(bpf.QueuesError); errors.As(err, &q) {
		return fmt.Errorf("%s: %w; to go on, `%s`", ifname, err, SetQueues(ifname, q.Had))
	}
	return err
}

// Left returns the folder of the resident regions that a process has left on the
// interface when it ended, as `xdpfab resident` takes it; empty if there are none, a
// process has the interface, or this user may not see the folder.
func (i *Interface) Left() string {
	t := new(takenError)
	if !errors.As(i.taken(), &t) || process.HolderOf(t.link) != 0 {
		return ""
	}
	return t.left()
}

// takenError is an ErrBusy whose remedy is not to end whoever has the interface.
type takenError struct {
	ifname string
	link   uint32
	err    error
}

// Error names the process, and has its remedy.
func (e *takenError) Error() string {
	const once = "one at a time can have it"
	pid := process.HolderOf(e.link)
	who := fmt.Sprintf("%s is in use by another xdpfab, process %d (%s)", e.ifname, pid, process.Name(pid))
	switch sockets := process.ListensAt(pid); {
	case pid == os.Getpid():
		return fmt.Sprintf("%s is in use by another xdpfab domain of this process, and %s: close that one, or use it "+
			"here", e.ifname, once)
	case len(sockets) > 0 && process.Name(pid) == "xdpfabd" && absent(sockets[0]):
		return fmt.Sprintf("%s, and %s: its control socket %s has been removed, or is in another container's file "+
			"system: restart it, which makes the socket anew, and go through that", who, once, sockets[0])
	case len(sockets) > 0 && process.Name(pid) == "xdpfabd":
		return fmt.Sprintf("%s, and %s: go through it by its control socket, %s (--control, XDPFAB_CONTROL, "+
			"DomainAttr.Control)", who, once, sockets[0])
	case pid != 0:
		return fmt.Sprintf("%s, and %s: end it, or run xdpfabd in its place and let both go through that", who, once)
	}
	if folder := e.left(); folder != "" {
		return fmt.Sprintf("%s is in use by resident regions, left in %s by a process that has ended: end them with "+
			"`xdpfab resident remove %s`, or start xdpfabd with --pin %s to go on with them", e.ifname, folder, folder,
			folder)
	}
	id := ""
	if e.link != 0 {
		id = fmt.Sprintf(" id %d", e.link)
	}
	return fmt.Sprintf("%s is in use by another xdpfab, and %s: go through it if it is a daemon (--control PATH); "+
		"if a process has left resident regions there when it ended, `xdpfab resident list` shows their folder, as "+
		"root, and `xdpfab resident remove` ends them; root sees a process that has it with `bpftool link show%s`",
		e.ifname, once, id)
}

// left is the folder of the resident regions that keep the program attached; empty if
// this user can see none.
func (e *takenError) left() string {
	b := new(bpf.BusyError)
	if !errors.As(e.err, &b) {
		return ""
	}
	state := b.Folder()
	if state == "" {
		return ""
	}
	return filepath.Dir(state) // the state is in a folder with the name of its version
}

func (e *takenError) Unwrap() error { return e.err }

// absent reports whether a file is not there. One that this user may not see may be.
func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
