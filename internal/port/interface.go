// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

var (
	// ErrMTU means that no packet buffer is large enough for the MTU, or no
	// frame small enough.
	ErrMTU = nic.ErrMTU
	// ErrEnded means that the program of Options.Adopt no longer runs anywhere.
	ErrEnded = bpf.ErrEnded
	// ErrOtherInterface means that it belongs to another interface.
	ErrOtherInterface = bpf.ErrOtherInterface
)

// Interface is a network interface in use. Its methods may be called from any
// goroutine; its queues have one thread each.
type Interface struct {
	name   string // at the time of Open
	index  int
	mac    wire.MAC
	mtu    int // bytes
	driver string
	plan   nic.Plan // likewise
	udp    bool
	vlan   bpf.VLANPolicy

	forgets bool      // the driver forgets its program when the interface is set down
	netns   namespace // of the interface, if so, with UDP, or with busy polling
	held    heldBack  // interrupts

	xdp      bpf.Mode
	generic  string // why it is generic
	program  *bpf.Program
	resolver *route.Resolver
	watcher  *watcher
	waiter                          // the queues
	aside    []minder               // further queues, which no engine has
	bound    int                    // queues that the XDP program has places for
	label    atomic.Pointer[string] // the present name; the watcher writes it

	serving  sync.Mutex         // keeps reading addresses and serving them together
	served   []netip.Addr       // the program takes UDP packets for these; guarded by serving
	reserved map[netip.Addr]int // sockets by address: see reserve; guarded by serving
	crowded  error              // an address that could not be reserved; guarded by serving

	mu     sync.Mutex // keeps Counters and Close apart
	closed bool       // guarded by mu
}

// Open puts an interface of the calling thread's network namespace to use. The
// Interface stays with that namespace, whatever thread uses it later.
//
// The error names what to do about it, and matches the sentinel of package xsk or
// bpf where there is one, ErrMTU, fs.ErrPermission, or the context's, which ends the wait
// for a carrier. Nothing is left behind.
func Open(ctx context.Context, ifname string, o Options) (*Interface, error) {
	defaults := o.RingSize == 0 && o.Chunks == 0
	if err := o.complete(); err != nil {
		return nil, err
	}
	n, plan, err := inspect(ifname, o)
	if err != nil {
		return nil, err
	}
	o.chunk, o.segments = plan.Chunk, plan.Segments
	if o.Copy = plan.Mode; defaults {
		o.RingSize = plan.RingSize()
	}
	i := &Interface{name: n.Name, index: n.Index, mac: wire.MAC(n.HardwareAddr), mtu: n.MTU,
		driver: n.Driver, plan: plan, udp: o.UDP, vlan: o.VLAN, reserved: map[netip.Addr]int{}}
	i.bound = max(plan.Bound, min(n.RXQueues, bpf.MaxReceiveQueues))
	i.label.Store(&i.name)
	i.generic = plan.Reason
	i.forgets = slices.Contains(forgetful, i.driver)
	if i.netns.fd = -1; i.forgets || i.udp || o.BusyPoll.Time > 0 {
		i.netns = thisNamespace()
	}
	if err := i.start(ctx, plan, o); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// Program is the XDP program of the interface, which belongs to it. With Options.Execute
// it takes an executor.
func (i *Interface) Program() *bpf.Program { return i.program }

// inspect looks up an interface of the calling thread's network namespace, and
// checks that it can be used as the options say.
func inspect(ifname string, o Options) (nic.Interface, nic.Plan, error) {
	machine, err := nic.Machine()
	if err != nil {
		return nic.Interface{}, nic.Plan{}, err
	}
	i, err := nic.Inspect(ifname)
	if err != nil {
		return i, nic.Plan{}, err
	}
	wanted := o.XDP
	if o.adopts() {
		if o.XDP, err = i.Keeps(o.XDP); err != nil {
			return i, nic.Plan{}, err
		}
		i.Attached = nil // what is there is adopted
	}
	plan := machine.Plan(&i, nic.Want{Queues: o.Queues, Lend: o.Lend, Chunks: o.Chunks, Copy: o.Copy,
		BusyPoll: o.BusyPoll.Time > 0, XDP: o.XDP, VLAN: o.VLAN})
	if o.XDP == bpf.Generic && o.XDP != wanted {
		plan.Reason = "the program that was there ran so"
	}
	if err := plan.Err(); err != nil {
		return i, plan, err
	}
	if err := o.mayLend(plan.Queues); err != nil {
		return i, plan, fmt.Errorf("%s: %w", i.Name, err)
	}
	return i, plan, nil
}

// start does everything that Close undoes.
func (i *Interface) start(ctx context.Context, plan nic.Plan, o Options) (err error) {
	if i.resolver, err = route.New(i.index, i.vlan.ID()); err != nil {
		return err
	}
	if i.watcher, err = newWatcher(i); err != nil {
		return err
	}
	// The program goes first: it tells at once whether the interface is taken, and
	// drivers set their queues up anew when they get one.
	if err = i.load(i.bound, o); err == nil {
		i.watcher.addrs, err = i.serve()
	}
	if crowded := i.unserved(); err == nil && crowded != nil {
		return crowded
	}
	carrier := sends(i.resolver)
	if err == nil {
		if err = i.program.Attach(i.index, plan.Attach); o.adopts() && errors.Is(err, bpf.ErrAttached) {
			err = nil // Replace puts it in place
		}
	}
	if err != nil {
		return plan.Refused(err)
	}
	all, err := i.checkAdded(o)
	if err != nil {
		return err
	}
	for number := range plan.Queues {
		q, err := newQueue(i.index, number, o)
		if err != nil {
			return fmt.Errorf("%s: queue %d: %w", i.name, number, err)
		}
		i.queues = append(i.queues, q)
		if err := i.program.SetSocket(number, lane, q.sock.FD()); err != nil {
			return fmt.Errorf("%s: %w", i.name, err)
		}
	}
	if err := i.prepareLendable(plan, o); err != nil {
		return err
	}
	if err := i.bindForwarders(plan, all, o); err != nil {
		return err
	}
	// binding the last queue may have taken it, too
	if err := awaitCarrier(ctx, i.resolver, i.driver, carrier); err != nil {
		return fmt.Errorf("%s: waiting for its carrier: %w", i.name, err)
	}
	if err := i.holdBack(plan.Bound, o); err != nil {
		return err
	}
	// Last, when nothing can fail: until then the former program runs.
	if o.adopts() {
		if err := i.program.Replace(); err != nil {
			return nic.Taken(i.name, err)
		}
	}
	i.xdp = i.program.Mode()
	return nil
}

// load loads the program, which is to take another's place if that fits.
func (i *Interface) load(queues int, o Options) (err error) {
	c := bpf.Config{MAC: i.mac, MTU: i.mtu, UDP: i.udp, Execute: o.Execute,
		Frags: o.segments > 0, VLAN: i.vlan}
	switch {
	case o.Inherit != nil:
		i.program, err = bpf.TakeOver(o.Inherit.Program, o.Adopt, c, queues, i.index)
	case o.Adopt != "":
		i.program, err = bpf.Adopt(o.Adopt, c, queues, i.index)
	default:
		i.program, err = bpf.Load(c, queues)
	}
	if err = nic.Fewer(i.name, err); err == nil && o.Fits != nil {
		err = o.Fits(i)
	}
	if err != nil && o.adopts() {
		err = &UnfitError{err}
	}
	return err
}

// serve makes the program take frames for the MAC addresses that the interface and those
// above it have now, and UDP packets for their IP addresses, which it returns. Any
// goroutine may call it: the addresses that were read last count.
func (i *Interface) serve() ([]netip.Addr, error) {
	i.serving.Lock()
	defer i.serving.Unlock()
	addrs, err := i.resolver.Addrs()
	if err != nil {
		return nil, err
	}
	var macs [][6]byte
	for _, mac := range i.resolver.MACs() {
		macs = append(macs, mac)
	}
	if err := i.program.SetMACs(macs); err != nil {
		return nil, fmt.Errorf("%s: %w", i.Name(), err)
	}
	if !i.udp {
		return nil, nil
	}
	i.served = nil
	served := addrs[:min(len(addrs), bpf.MaxAddrs)]
	if err := i.program.SetAddrs(served); err != nil {
		return nil, fmt.Errorf("%s: %w", i.Name(), err)
	}
	i.served = served
	i.crowded = i.reserve(addrs)
	return addrs, nil
}

// serves reports whether the program takes UDP packets for an address already.
func (i *Interface) serves(a netip.Addr) bool {
	i.serving.Lock()
	defer i.serving.Unlock()
	return slices.Contains(i.served, a)
}

// Networks lists the addresses that UDP is served at, each with the length of its
// network's prefix; none if UDP is not served.
func (i *Interface) Networks() ([]netip.Prefix, error) {
	if !i.udp {
		return nil, nil
	}
	return i.resolver.Networks()
}

// Close gives the interface back: first the XDP program is detached, so that packets go
// to the kernel again, then the sockets are closed. No thread may use a queue from then
// on, except for Wake. Closing twice is no error.
func (i *Interface) Close() error {
	if i.watcher != nil {
		i.watcher.close()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	errs := []error{i.letIn(), i.netns.close(), i.closeAside()}
	i.release()
	if i.program != nil {
		errs = append(errs, i.program.Close())
	}
	errs = append(errs, closeQueues(i.queues))
	if i.resolver != nil {
		i.resolver.Close()
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing %s: %w", i.Name(), err)
	}
	return nil
}

// Link finds the way to an address. For a MAC address it is known at once; for an
// IP address the kernel is asked for route, source and next hop, which may take
// up to 3 s if a neighbour has to be found. See route.Resolver.
func (i *Interface) Link(ctx context.Context, a wire.Addr) (wire.Link, error) {
	l := wire.Link{Kind: a.Kind(), VLAN: i.vlan.ID(), Local: i.mac, Remote: a.MAC}
	if !a.IsIP() {
		if slices.Contains(i.resolver.MACs(), a.MAC) {
			l.Remote = i.mac // this node itself
		}
		return l, nil
	}
	if !i.udp {
		return wire.Link{},
			fmt.Errorf("%s: %w, so it reaches no %v: open it with UDP (xdpfabd without --udp=false, "+
				"no DomainAttr.EthernetOnly), or give the peer's MAC address", i.Name(), ErrNoUDP, a.IP)
	}
	hop, err := i.resolver.Resolve(ctx, a.IP)
	return i.linkOver(a, hop, err)
}

// LinkBy is Link for a next hop whose MAC address is known: it does not wait. Follow
// tells if the next hop has another one by now.
func (i *Interface) LinkBy(a wire.Addr, next wire.MAC) (wire.Link, error) {
	if !a.IsIP() || !i.udp {
		return i.Link(context.Background(), a)
	}
	own, err := i.resolver.Addrs()
	var hop route.Hop
	if err == nil {
		hop, err = i.resolver.Look(a.IP.Unmap().WithZone(""), own)
	}
	if hop.MAC == (wire.MAC{}) { // not this node itself
		hop.MAC = next
	}
	return i.linkOver(a, hop, err)
}

// linkOver returns the link to an IP address by a hop that was found.
func (i *Interface) linkOver(a wire.Addr, hop route.Hop, err error) (wire.Link, error) {
	if errors.Is(err, route.ErrClosed) {
		return wire.Link{}, ErrClosed
	}
	if err != nil {
		return wire.Link{}, err
	}
	// The source address may be so new that its notice has not arrived yet; answers to
	// it have to be accepted all the same.
	if !i.serves(hop.Source) {
		if _, err := i.serve(); err != nil {
			return wire.Link{}, err
		}
		hop.Local = i.resolver.LocalOf(hop) // serve has read the MAC addresses again
	}
	return wire.Link{Kind: a.Kind(), VLAN: i.vlan.ID(), Local: hop.Local, Remote: hop.MAC, LocalIP: hop.Source,
		RemoteIP: a.IP}, nil
}

// Queues are the queues in use, by number. The slice must not be changed.
func (i *Interface) Queues() []*Queue { return i.queues }

// Name is the interface's present name.
func (i *Interface) Name() string { return *i.label.Load() }

// Index is the interface's index in its network namespace.
func (i *Interface) Index() int { return i.index }

// MAC is the interface's address at the time of Open.
func (i *Interface) MAC() wire.MAC { return i.mac }

// MTU is the interface's at the time of Open, in bytes.
func (i *Interface) MTU() int { return i.mtu }

// Driver is the name of the kernel's driver, "none" if it has none.
func (i *Interface) Driver() string { return i.driver }

// UDP reports whether frames over UDP are accepted.
func (i *Interface) UDP() bool { return i.udp }

// Modes describes which modes the kernel granted.
type Modes struct {
	XDP   bpf.Mode  // Native or Generic
	Copy  xsk.Mode  // ZeroCopy, or Copy if any queue has it
	Pages xsk.Pages // of the packet memory: the smallest of any queue
}

// Modes reports how packets get from the NIC to the queues.
func (i *Interface) Modes() Modes {
	m := Modes{XDP: i.xdp, Copy: xsk.ZeroCopy, Pages: xsk.PagesHuge}
	for _, q := range i.queues {
		m.Copy = max(m.Copy, q.mode)
		m.Pages = min(m.Pages, q.umem.Pages())
	}
	return m
}

// Chunk is the size of a packet buffer, in bytes.
func (i *Interface) Chunk() int { return i.queues[0].umem.ChunkSize() }
