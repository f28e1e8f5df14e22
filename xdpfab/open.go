// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Domain is an interface in use: its queues, each with an engine, and the memory that
// peers may address. Serve publishes memory, Dial reaches a peer's, NewMailbox receives
// messages, and Statistics counts. Further, it has all methods of [fi.Domain]:
//
//	its end     Close, CloseAll; Done and Err, when the interface is lost
//	itself      Attr, Info, Interface, Name, Stats, PeerStats, Fabric, QueryAtomic
//	memory      NewRegion, Register, RegisterAsync, BindRegion, WaitWord; Keep and
//	            TakeBack, of a guest
//	resident    NewResidentRegion, NewResidentMemory, Resume
//	tests       SetFaults, on a Pipe or a Network
//	endpoints   NewEndpoint, NewPassiveEndpoint, NewScalableEndpoint, NewAddressVector
//	queues      NewCompletionQueue, NewCounter, NewPollSet, NewSharedReceive,
//	            NewSharedTransmit, BindEQ
//	deferred    QueueWork, CancelWork, FlushWork
//	progress    Progress, if it is manual
//
// "go doc github.com/xdpfab/xdpfab/xdpfab/fi Domain" shows them, and "… fi
// Domain.SetFaults" one of them.
type Domain struct {
	*fi.Domain

	entry entry // of its services
}

// DomainAttr are the attributes of a domain; the zero value is the defaults, which are in
// parentheses here. These are its fields, in short; "go doc
// github.com/xdpfab/xdpfab/xdpfab/fi DomainAttr", or "… DomainAttr.GiveUp" for one of
// them, has all of [fi.DomainAttr].
//
// Peers, and the way to them:
//
//	GiveUp        time.Duration  silence that ends a peer's operations (5 s)
//	IdleRetire    time.Duration  silence that ends a peer's session (90 s)
//	AuthKey       fi.AuthKey     secret that peers have to prove (none)
//	Transport     fi.Transport   TransportUDP, TransportAuto (TransportXDP)
//	EthernetOnly  bool           raw Ethernet alone, and no frames over UDP (both)
//
// A daemon that has the interface:
//
//	Attach   fi.AttachMode  AttachNever, AttachAlways (AttachAuto)
//	Control  string         path of its control socket (/run/xdpfabd/<interface>.sock)
//	Borrow   bool           borrow a queue from it, and drive that alone (no)
//
// The interface, if the domain opens it itself:
//
//	Queues    int           queues in use, from queue 0 on (4 at most)
//	Cores     []int         cores of the queues' pollers (the kernel chooses)
//	Spread    bool          divide sessions among the queues, whatever the NIC does (no)
//	Copy      fi.CopyMode   fi.CopyForce, fi.ZeroCopyForce (fi.CopyAuto)
//	XDP       fi.XDPMode    fi.XDPNative, fi.XDPGeneric or fi.XDPAny (fi.XDPAuto)
//	BusyPoll  xsk.BusyPoll  the pollers run the NIC's driver, without interrupts (none)
//	Lend      int           0: a daemon alone lends queues, by xdpfabd --lend (0)
//
// Threads and sessions:
//
//	Spin          time.Duration    how long idle pollers look for work (50 µs)
//	Progress      fi.ProgressMode  fi.ProgressManual (fi.ProgressAuto)
//	Threading     fi.Threading     fi.ThreadDomain (fi.ThreadSafe)
//	Window        int              frames in flight of a session, 1 to 64 (64)
//	RTOMin        time.Duration    shortest time before a frame is sent again (10 ms)
//	BaseRTT       time.Duration    longest round trip of the idle network (50 µs)
//	TrafficClass  fi.TrafficClass  of endpoints without one (fi.TrafficUnspec)
//
// Resident memory, and all else:
//
//	ResidentSessions  int           sessions that the kernel can execute (256)
//	ResidentPin       string        folder that keeps it after the process (none)
//	ResidentLeave     bool          Close leaves what is in ResidentPin (no)
//	MRMode            fi.MRMode     makes all regions alike (mr.Options decide)
//	Log               *slog.Logger  gets what happens to the interface (nobody)
//	Context           any           comes back with events about the domain (nil)
type DomainAttr = fi.DomainAttr

// The values of DomainAttr.Transport.
const (
	TransportXDP  = fi.TransportXDP  // AF_XDP sockets, which are the fastest; the default
	TransportUDP  = fi.TransportUDP  // UDP sockets, which need no privilege
	TransportAuto = fi.TransportAuto // AF_XDP if the program may use it, or else UDP sockets
)

// The values of DomainAttr.Attach.
const (
	AttachAuto   = fi.AttachAuto   // through the daemon if one serves the interface; the default
	AttachNever  = fi.AttachNever  // the domain opens the interface itself
	AttachAlways = fi.AttachAlways // through the daemon, or not at all
)

// AnyNumber, as the Number of a mailbox, a handler or an endpoint, picks a free one.
const AnyNumber = fi.AnyNumber

// EndpointAttr are the attributes of an endpoint; the zero value is the defaults. Its
// fields, each of which "go doc github.com/xdpfab/xdpfab/xdpfab/fi EndpointAttr"
// explains:
//
//	itself      Number, Type, InitiateOnly, Request, AuthKey, TrafficClass, Context
//	operations  Size, InjectSize, MsgOrder, OpFlags
//	receives    ReceiveSize, ReceiveFlags, BufferedReceive, MinMultiRecv, SourceErr
type EndpointAttr = fi.EndpointAttr

// RemoteRegion is a region of a peer, as Peer.Lookup finds it: its Name, Size, Access,
// Key, Base and Incarnation, and whether it is Keyed, which [mr.RemoteRegion] explains.
// It can be sent in a message (MarshalBinary, UnmarshalBinary): [mr.Region.Remote]
// describes a region of the sender's own. See also [fi.RemoteRegion].
type RemoteRegion = fi.RemoteRegion

// Faults are the faults of a cable in memory, for Domain.SetFaults and Network.SetFaults,
// in a Pipe or a Network. Loss, Duplicate, Reorder and Corrupt are probabilities from 0
// to 1. Delay holds back every packet. See [fi.Faults].
type Faults = fi.Faults

// Open opens an interface; the zero DomainAttr means the defaults. If a daemon serves the
// interface, the domain goes through the daemon, and needs no privilege: see
// DomainAttr.Attach. Otherwise Open attaches the XDP program, and opens a socket and an
// engine for each queue. The kernel still gets every packet that is not for xdpfab. Only
// one domain can open an interface at a time: others get ErrBusy. If there is no such
// interface, the error is ErrNoInterface.
//
// Without a daemon, Open needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_PERFMON, and
// CAP_IPC_LOCK or a sufficient limit of locked memory. The error names what is missing,
// and wraps os.ErrPermission. With [TransportAuto], Open then uses UDP sockets, which
// need no privilege.
func Open(ctx context.Context, ifname string, attr DomainAttr) (*Domain, error) {
	if ifname == "" {
		return nil, errno.Refuse(fi.ErrNoInterface,
			"xdpfab: Open without the name of an interface: want one of those that `ip link` lists, such as eth0")
	}
	f, err := fi.NewFabric(attr)
	if err != nil {
		return nil, err
	}
	return on(f.OpenDomain(ctx, ifname, DomainAttr{}))
}

// Pipe returns two domains that a cable in memory joins: no interface, no privilege, no
// kernel, but otherwise all of xdpfab. It is for tests and examples, like net.Pipe. The
// addresses of their endpoints are a.Name(n) and b.Name(n). Pass no attributes for the
// defaults, one DomainAttr for both domains, or one for each. A [Network] has more nodes,
// and restarts.
func Pipe(attr ...DomainAttr) (a, b *Domain, err error) {
	near, far, err := fi.Pipe(attr...)
	if err != nil {
		return nil, nil, err
	}
	return &Domain{Domain: near}, &Domain{Domain: far}, nil
}

// on makes a Domain of the result of an open.
func on(d *fi.Domain, err error) (*Domain, error) {
	if err != nil {
		return nil, err
	}
	return &Domain{Domain: d}, nil
}
