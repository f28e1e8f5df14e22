// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
)

// Fabric opens domains; fi_fabric(3). It holds the default attributes of its domains.
type Fabric struct {
	attr DomainAttr

	mu      sync.Mutex
	domains []*Domain
	queues  []*EventQueue
}

// NewFabric makes a fabric (fi_fabric). attr are the defaults of its domains.
func NewFabric(attr DomainAttr) (*Fabric, error) {
	a, err := attr.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Fabric{attr: a}, nil
}

// OpenDomain puts an interface to use (fi_domain). If a daemon serves the interface, the
// domain goes through the daemon, and needs no privilege: see DomainAttr.Attach.
// Otherwise it attaches the XDP program and opens a socket and an engine for each queue;
// the kernel keeps everything that is not addressed to xdpfab, and an interface can be
// opened by one domain at a time: ErrBusy. The attributes are the fabric's, but fields of
// attr that are not zero replace them; so an option that is on in the fabric stays on.
//
// Without a daemon it needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_PERFMON, and
// CAP_IPC_LOCK or a sufficient limit of locked memory; the error names what is missing.
func (f *Fabric) OpenDomain(ctx context.Context, ifname string, attr DomainAttr) (*Domain, error) {
	if err := f.there(); err != nil {
		return nil, err
	}
	return f.open(ctx, ifname, f.attr.with(attr))
}

// open is OpenDomain with all attributes.
func (f *Fabric) open(ctx context.Context, ifname string, a DomainAttr) (*Domain, error) {
	a, err := a.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := errno.NoContext(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("xdpfab: %s was not opened: %w", ifname, context.Cause(ctx))
	}
	path, chosen := a.control(ifname)
	if a.Borrow {
		return f.borrow(ctx, ifname, path, chosen, a)
	}
	var noDaemon error
	if a.attaches() {
		dev, err := openAttached(ctx, ifname, path, chosen)
		if err == nil {
			return f.adopt(dev, a)
		}
		absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
		switch {
		case absent && chosen:
			err = unserved(path, err)
		case absent && a.Attach == AttachAlways:
			err = fmt.Errorf("%w: start xdpfabd on %s, or open it without a daemon: want AttachAuto or AttachNever",
				err, ifname)
		}
		if a.Attach == AttachAlways || !errors.Is(err, ErrNoDaemon) {
			return nil, fmt.Errorf("xdpfab: %w", err)
		}
		noDaemon = err
	}
	dev, at, err := a.openTransport(ctx, ifname)
	if err != nil {
		err = ours(ifname, err)
		// Whoever named a socket meant a daemon; one that refuses access is there.
		if chosen && noDaemon != nil || errors.Is(noDaemon, fs.ErrPermission) {
			err = withoutDaemon(noDaemon, err)
		}
		if a.Transport == TransportXDP && errors.Is(noDaemon, fs.ErrNotExist) && errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w; or have root start xdpfabd on %s, through which programs need no privilege", err,
				ifname)
		}
		return nil, fmt.Errorf("xdpfab: %w", err)
	}
	d, err := f.add(newDomain(f, dev, a, at, 0))
	if err == nil {
		d.settle(node.Here(dev.Info().Index))
	}
	return d, err
}

// withoutDaemon is the error of an interface that could not be opened without a daemon
// either. If the daemon's socket refused access and the interface is in use, the way in
// is the socket: rights to open the interface would not help, and stopping its owner
// would end the daemon.
func withoutDaemon(noDaemon, err error) error {
	if errors.Is(noDaemon, fs.ErrPermission) && errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("%w; without it: the interface is %w, as a rule by that daemon", noDaemon, ErrBusy)
	}
	return fmt.Errorf("%w; without it: %w", noDaemon, err)
}

// adopt makes a domain of a device and adds it to the fabric's.
func (f *Fabric) adopt(dev node.Device, a DomainAttr) (*Domain, error) {
	return f.add(newDomain(f, dev, a, nil, 0))
}

// add adds a new domain to the fabric's, unless there is an error.
func (f *Fabric) add(d *Domain, err error) (*Domain, error) {
	if err != nil {
		return nil, fmt.Errorf("xdpfab: %w", err)
	}
	f.mu.Lock()
	f.domains = append(f.domains, d)
	f.mu.Unlock()
	return d, nil
}

// remove is called by a domain that closes.
func (f *Fabric) remove(d *Domain) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.domains = slices.DeleteFunc(f.domains, func(x *Domain) bool { return x == d })
}

// Close fails with ErrBusy, and names the interfaces, as long as domains are open, and as
// long as event queues are.
func (f *Fabric) Close() error {
	if err := f.there(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.domains) == 0 && len(f.queues) == 0 {
		return nil
	}
	if len(f.domains) == 0 {
		return errno.Refuse(ErrBusy, "xdpfab: fabric: %d event queues are open, close them first", len(f.queues))
	}
	var names []string
	for _, d := range f.domains {
		names = append(names, d.label())
	}
	return errno.Refuse(ErrBusy, "xdpfab: fabric: domains on %v are open, close them first", names)
}

// Pipe returns two domains joined by a cable in memory: no interface, no privilege, no
// kernel, but otherwise all of xdpfab. It is meant for tests and examples, like net.Pipe.
// Their addresses are a.Name(n) and b.Name(n). attr is for both, or one for each. Of the
// attributes, those of an interface's queues have no effect, so that a test can have
// those of the program; UDP sockets, a queue to borrow, and AttachAlways are refused,
// since there is neither an interface nor a daemon.
func Pipe(attr ...DomainAttr) (a, b *Domain, err error) {
	var attrs [2]DomainAttr
	if len(attr) > 2 {
		return nil, nil, errno.Refuse(ErrArgument,
			"xdpfab: Pipe with %d attributes: want one for both domains, or one for each",
			len(attr))
	}
	if copy(attrs[:], attr) == 1 {
		attrs[1] = attrs[0]
	}
	ends, err := node.Cable()
	if err != nil {
		return nil, nil, err
	}
	if a, err = domainOn(ends[0], attrs[0]); err != nil {
		return nil, nil, err
	}
	if b, err = domainOn(ends[1], attrs[1]); err != nil {
		_ = a.CloseAll()
		return nil, nil, err
	}
	return a, b, nil
}

// domainOn makes a domain of a device.
func domainOn(dev node.Device, attr DomainAttr) (*Domain, error) {
	if _, memory := dev.(*node.PipeEnd); memory {
		if err := attr.inMemory(); err != nil {
			return nil, err
		}
	}
	f, err := NewFabric(attr)
	if err != nil {
		return nil, err
	}
	return f.adopt(dev, f.attr)
}

// inMemory refuses attributes that promise something else than a cable in memory.
func (a *DomainAttr) inMemory() error {
	what := ""
	switch {
	case a.Transport == TransportUDP:
		what = "Transport udp"
	case a.Borrow:
		what = "Borrow"
	case a.Attach == AttachAlways: // no daemon serves it
		what = "AttachAlways"
	default:
		return nil
	}
	return errno.Refuse(errors.Join(ErrNotImplemented, ErrArgument),
		"xdpfab: a domain in memory with %s, which takes an interface: want it left out, or Open with the name of "+
			"one", what)
}

func init() {
	node.DomainOn = func(dev node.Device, attr any) (any, error) {
		a := attr.(DomainAttr)
		if _, cable := dev.(*node.PipeEnd); !cable {
			a.clock = nil // a test's clock is that of one domain: of the one with the cable
		}
		return domainOn(dev, a)
	}
}

// Faults are what can happen to the packets that a domain of a [Pipe] or a Network, or
// one with TransportUDP, sends, each with a probability from 0 to 1. A generator with a
// fixed seed makes the choices.
type Faults struct {
	Loss      float64 // dropped; 1 at both domains is a partition
	Duplicate float64 // delivered twice
	Reorder   float64 // delivered ahead of up to 8 packets sent before
	Corrupt   float64 // one bit flipped

	Delay time.Duration // every packet is delayed by this much, or a little more
}

// SetFaults sets the faults of the packets that the domain sends from now on. It is for
// tests of programs: how they handle an operation that ends with [ErrOutcomeUnknown], for
// example. It fails with ErrNotImplemented unless the domain is one of a Pipe or a
// Network, or has TransportUDP, where packets cannot be delayed.
func (d *Domain) SetFaults(f Faults) error {
	if err := d.there(); err != nil {
		return err
	}
	dev, ok := d.node.Dev.(node.Disturbable)
	if !ok {
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: faults of packets on %s: want a domain of a Pipe or a Network, or one with TransportUDP",
			d.label())
	}
	if err := port.Faults(f).Check(); err != nil {
		return errno.Refuse(ErrArgument, "xdpfab: %w", err)
	}
	if err := dev.Disturb(port.Faults(f)); err != nil {
		return fmt.Errorf("xdpfab: %w", err)
	}
	return nil
}
