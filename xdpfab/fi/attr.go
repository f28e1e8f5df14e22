// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/resident"
	"github.com/xdpfab/xdpfab/xsk"
)

// DomainAttr are the attributes of a domain. The zero value of a field means its default.
type DomainAttr struct {
	Progress ProgressMode // ProgressAuto
	Context  any          // comes back with each event about the domain
	// Threading is how far the caller keeps its own goroutines apart; ThreadSafe. With
	// ThreadDomain and manual progress the caller makes no two calls at a time on the
	// domain and all that belongs to it; posting, reading completions and counting then
	// take no locked instruction. In all other cases ThreadSafe is in force, which
	// surpasses the other models.
	Threading Threading
	// Queues is the number of the interface's queues to use, from queue 0 on; 0 means 4,
	// or all if there are fewer: each has a poller and 8 or 16 MiB of packet memory, and
	// a server may have a queue for each core. Frames that arrive on further queues reach
	// these by a copy, so steer them: see InterfaceInfo.Relayed.
	Queues int
	// Lend is how many further queues the domain has to lend; 0, which is the one value
	// that Open takes. Programs attach to daemons alone, which lend queues by xdpfabd
	// --lend: see DomainAttr.Borrow.
	Lend int
	// Spread gives the sessions that peers begin to the queues in turn, whatever queue
	// their frames arrive on. It is for NICs that put all frames into one queue: the
	// other queues' pollers then share the work, and the first one passes frames on.
	Spread bool
	// Cores pins the poller of queue i to Cores[i%len(Cores)]. Empty leaves the choice to
	// the kernel.
	Cores []int
	// Spin is how long an idle poller or waiter looks for work before it sleeps; 50 µs.
	Spin time.Duration
	// Copy is the AF_XDP mode: zero-copy when the driver supports it, or one that is
	// forced.
	Copy CopyMode
	// XDP is the XDP mode, which XDPNative and XDPGeneric force.
	XDP XDPMode
	// BusyPoll has the domain's pollers and waiters run the NIC's driver themselves, in
	// place of the interrupts of its queues, which are held back until the domain is
	// closed: see docs/tuning.md. A file beside Control remembers what was there. It
	// takes a NIC with native XDP, and Linux 6.13. None.
	BusyPoll xsk.BusyPoll
	// EthernetOnly takes raw Ethernet frames alone. Otherwise frames over UDP are taken,
	// too, at the IP addresses that the interface has at each moment: peers reach the
	// domain, and it reaches them, by MAC address or by IP address. Frames over UDP can
	// come from beyond the Ethernet segment, and no firewall of this machine sees them.
	EthernetOnly bool
	// Transport is what carries packets: AF_XDP, or UDP sockets, which need no privilege
	// but are slower. TransportXDP.
	Transport Transport
	// Log gets the changes of the interface: of its addresses, its state and the ways to
	// peers, and the change that ends the domain. If the domain goes through a daemon, it
	// also gets that the daemon has ended, and why the next one refuses what the domain
	// has. No operation writes to it. Nil means that nothing is logged.
	Log *slog.Logger

	Window int           // request frames in flight per session, 1..64; 64
	GiveUp time.Duration // silence of a peer after which operations are given up; 5 s
	// RTOMin is the floor of the retransmission timeout, which should stand above the
	// peers' scheduling noise; 10 ms.
	RTOMin time.Duration
	// BaseRTT is the longest round trip of the idle network; 50 µs. Congestion control
	// takes any longer time for queueing, unless no round trip to any peer was as short:
	// then it takes the shortest one, up to 1 ms. Raise it if some paths are long and
	// others short.
	BaseRTT time.Duration
	// IdleRetire is the silence after which a peer's session is forgotten, unless the
	// peer asks for longer; 90 s.
	IdleRetire time.Duration

	// ResidentSessions is how many sessions of peers the XDP program can execute at a
	// time, once there is resident memory; each takes 130 KiB. 256, at most 16384. What
	// another process left, or hands over, keeps the number that it was made with.
	ResidentSessions int

	// ResidentPin is a folder of a BPF file system, such as /sys/fs/bpf/xdpfab/eth0. It
	// keeps the state of resident regions, so that the kernel serves them, and the
	// sessions that use them, after the process has died. Everything else is lost then,
	// and peers learn of a restart. A domain that is opened with the same folder takes
	// the regions back. Such a domain takes no packets until Resume. The folder is made
	// with the first resident memory, and Close removes it. See docs/resident.md. Empty:
	// all ends with the process.
	ResidentPin string
	// ResidentLeave has Close leave what is in ResidentPin, as if the process had died,
	// unless the interface was lost.
	ResidentLeave bool

	// MRMode makes all regions alike: with MRVirtAddr peers give virtual addresses, with
	// MRProvKey the domain chooses all keys, MRAllocated changes nothing. Others are
	// refused. 0 leaves the choice to mr.Options.
	MRMode MRMode

	// TrafficClass is that of endpoints which leave it to the domain (tclass), also of
	// the endpoint that dials; TrafficUnspec.
	TrafficClass TrafficClass

	// AuthKey is the authorization key of endpoints and regions that have none of their
	// own (auth_key), also of the endpoint that dials; none.
	AuthKey AuthKey

	// Attach decides whether the domain goes through the daemon that has the interface;
	// AttachAuto. Through it, no privilege is needed; Queues, Copy, XDP, BusyPoll and
	// EthernetOnly are the daemon's and those here have no effect. GiveUp is the domain's
	// own; Window, RTOMin, BaseRTT and IdleRetire are the daemon's, and other values are
	// refused. InterfaceInfo.Daemon tells which way it went.
	Attach AttachMode
	// Control is the path of the daemon's control socket; that of the environment
	// variable ControlEnv, or else /run/xdpfabd/<interface>.sock.
	Control string
	// Borrow makes the domain borrow a queue of the interface from the daemon, and drive
	// it by itself, at the speed of a domain that has the interface, and without a
	// privilege. The daemon's configuration has to allow it, and to have a queue to
	// spare. The domain ends with the daemon: ErrHostLost.
	Borrow bool

	encap     encap        // set by Fabric.OpenInfo
	defaulted defaulted    // filled in
	clock     func() int64 // of the engines, ns, monotonic; nil means the system's. For tests
}

// defaulted describes which attributes have their default, for a guest: there it is the
// host's.
type defaulted struct{ giveUp, idleRetire bool }

// with returns the attributes, with the fields of b that are not zero in place of their
// own.
func (a DomainAttr) with(b DomainAttr) DomainAttr {
	to, from := reflect.ValueOf(&a).Elem(), reflect.ValueOf(b)
	for i := range from.NumField() {
		if from.Type().Field(i).IsExported() && !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	if b.GiveUp != 0 {
		a.defaulted.giveUp = b.defaulted.giveUp
	}
	if b.IdleRetire != 0 {
		a.defaulted.idleRetire = b.defaulted.idleRetire
	}
	if b.clock != nil {
		a.clock = b.clock
	}
	return a
}

// tune settles the attributes of sessions with the host of a domain that has one.
func (a *DomainAttr) tune(dev node.Device) error {
	t := node.Tuning{GiveUp: a.GiveUp, RTOMin: a.RTOMin, BaseRTT: a.BaseRTT, IdleRetire: a.IdleRetire, Window: a.Window,
		DefaultGiveUp: a.defaulted.giveUp, DefaultIdleRetire: a.defaulted.idleRetire}
	err := dev.Tune(&t)
	a.GiveUp, a.RTOMin, a.BaseRTT, a.IdleRetire, a.Window = t.GiveUp, t.RTOMin, t.BaseRTT, t.IdleRetire, t.Window
	return err
}

// withDefaults checks the attributes and fills in the defaults. What it refuses is an
// ErrArgument, besides another cause.
func (a DomainAttr) withDefaults() (DomainAttr, error) {
	a, err := a.checked()
	return a, errno.Also(err, ErrArgument)
}

func (a DomainAttr) checked() (DomainAttr, error) {
	switch {
	case a.Progress > ProgressManual:
		return a, fmt.Errorf("xdpfab: DomainAttr.Progress is %v: want ProgressAuto or ProgressManual", a.Progress)
	case a.MRMode&^basicMR != 0:
		return a, errno.Refuse(ErrNotImplemented,
			"xdpfab: DomainAttr.MRMode is %v: want some of %v", a.MRMode, basicMR)
	case a.Threading > ThreadEndpoint:
		return a, fmt.Errorf("xdpfab: DomainAttr.Threading is %v: want ThreadSafe or another of the models",
			a.Threading)
	case a.ResidentSessions < 0 || a.ResidentSessions > resident.MaxSessions:
		return a, fmt.Errorf("xdpfab: DomainAttr.ResidentSessions is %d: want 1..%d, or 0 for the default",
			a.ResidentSessions, resident.MaxSessions)
	case a.ResidentPin != "" && a.Attach == AttachAlways:
		return a, fmt.Errorf("xdpfab: DomainAttr.ResidentPin is %s, which takes an interface of the domain's own: "+
			"want no AttachAlways", a.ResidentPin)
	case a.ResidentLeave && a.ResidentPin == "":
		return a, errors.New("xdpfab: DomainAttr.ResidentLeave takes a folder: want ResidentPin with it")
	case a.Queues < 0:
		return a, fmt.Errorf("xdpfab: DomainAttr.Queues is %d: want 0 for at most 4, or more", a.Queues)
	case a.Attach > AttachAlways:
		return a, fmt.Errorf("xdpfab: DomainAttr.Attach is %v: want AttachAuto, AttachNever or AttachAlways", a.Attach)
	case a.Transport > TransportAuto:
		return a, fmt.Errorf("xdpfab: DomainAttr.Transport is %v: want TransportXDP, TransportUDP or TransportAuto",
			a.Transport)
	case a.EthernetOnly && a.Transport != TransportXDP:
		return a, fmt.Errorf("xdpfab: DomainAttr.EthernetOnly takes AF_XDP: want none with the transport %v, or "+
			"TransportXDP", a.Transport)
	case a.BusyPoll.Check() != nil:
		return a, fmt.Errorf("xdpfab: DomainAttr.BusyPoll: %w", a.BusyPoll.Check())
	case a.BusyPoll.Time > 0 && a.Transport == TransportUDP:
		return a, errors.New("xdpfab: DomainAttr.BusyPoll takes AF_XDP, and UDP sockets poll no driver: want none, " +
			"or TransportXDP")
	case a.XDP > XDPAny:
		return a, fmt.Errorf("xdpfab: DomainAttr.XDP is %v: want XDPAuto, XDPNative, XDPGeneric or XDPAny", a.XDP)
	case a.Copy > ZeroCopyForce:
		return a, fmt.Errorf("xdpfab: DomainAttr.Copy is %v: want CopyAuto, CopyForce or ZeroCopyForce", a.Copy)
	}
	c, err := a.config().WithDefaults()
	if err := errno.Join(err, a.checkLoans(), a.TrafficClass.check("domain"), a.AuthKey.check("domain")); err != nil {
		return a, err
	}
	a.AuthKey = a.AuthKey.or(nil)
	if a.Threading != ThreadDomain || a.Progress != ProgressManual {
		a.Threading = ThreadSafe // is in force
	}
	a.defaulted.giveUp = a.defaulted.giveUp || a.GiveUp == 0
	a.defaulted.idleRetire = a.defaulted.idleRetire || a.IdleRetire == 0
	a.Spin, a.GiveUp, a.IdleRetire = c.Spin, c.GiveUp, c.IdleRetire
	return a, nil
}

// InterfaceInfo describes a network interface and the mode that it is used in.
type InterfaceInfo struct {
	Name   string `json:"name"`
	Index  int    `json:"index"`
	MAC    string `json:"mac"`
	MTU    int    `json:"mtu"` // bytes
	Driver string `json:"driver"`
	Queues int    `json:"queues"` // in use
	// Relayed is the number of further queues, neither in use nor to lend. Frames that
	// the NIC puts there reach those in use by a copy, and are counted as "forwarded".
	Relayed  int    `json:"relayed,omitempty"`
	XDP      string `json:"xdp"`       // "native" or "generic"
	Copy     string `json:"copy"`      // "zero-copy" or "copy"
	Chunk    int    `json:"chunk"`     // bytes of a packet buffer
	HugeUMEM bool   `json:"huge_umem"` // packet memory is on huge pages
	UDP      bool   `json:"udp"`
	// Served are the addresses at which frames over UDP are accepted at this moment, each
	// with the length of its network's prefix, separated by spaces.
	Served string `json:"served,omitempty"`
	// Above names the interfaces that this one belongs to, and whose addresses are served
	// with its own, such as "bond0 (bond)"; and those whose are not, with the reason.
	Above string `json:"above,omitempty"`
	// Daemon is the control socket of the daemon through which the domain uses the
	// interface, empty if it has the interface itself.
	Daemon string `json:"daemon,omitempty"`
	// Lent means that the domain drives a queue which that daemon has lent it.
	Lent bool `json:"lent,omitempty"`
	// Transport is "xdp" or "udp"; empty for a Pipe. Through a daemon it is the daemon's.
	Transport string `json:"transport,omitempty"`
	// Address is the IP address at which peers reach a domain with TransportUDP.
	Address string `json:"address,omitempty"`
	// NoXDP is why TransportAuto chose UDP sockets.
	NoXDP string `json:"no_xdp,omitempty"`
	// Beside is an XDP program on the interface that may keep packets from a domain with
	// TransportUDP: the process may not know whether it does.
	Beside string `json:"beside,omitempty"`
}

// config is what the attributes mean to the node.
func (a *DomainAttr) config() node.Config {
	return node.Config{
		Manual: a.Progress == ProgressManual, Alone: a.Threading == ThreadDomain, Spread: a.Spread,
		Cores: a.Cores, Spin: a.Spin, Log: a.Log, Clock: a.clock,
		Window: a.Window, GiveUp: a.GiveUp, RTOMin: a.RTOMin, BaseRTT: a.BaseRTT, IdleRetire: a.IdleRetire,
		ProvKey: a.MRMode&MRProvKey != 0, VirtAddr: a.MRMode&MRVirtAddr != 0, AuthKey: a.AuthKey,
		ResidentSessions: a.ResidentSessions, ResidentLeave: a.ResidentLeave,
	}
}
