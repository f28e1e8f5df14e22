// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/trust"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// defaultTimeout is that of peers.
const defaultTimeout = 5 * time.Second

// linkFlags say which interface to use, and how.
type linkFlags struct {
	ifname      string
	ifnameBy    string // what names it in place of the flag
	progress    fi.ProgressMode
	copyMode    fi.CopyMode
	xdp         fi.XDPMode
	transport   fi.Transport
	queues      int
	cores       []int
	giveUp      time.Duration
	control     string
	by          string // what in the configuration names the control socket; empty if a flag does
	directory   string
	transportBy string // what in the configuration names the transport; empty if a flag does
	authKey     string // path of a file
	authKeyBy   string // what in the configuration names the file; empty if a flag does
	direct      bool
	mailbox     bool // the number in the address is that of a mailbox
	bench       bool // the peer may be `xdpfab bench serve`
	verbose     bool
	borrowing
}

func (f *linkFlags) register(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVarP(&f.ifname, "interface", "i", "", "network interface to use; default: the one that leads to the peer")
	fs.TextVar(&f.progress, "progress", fi.ProgressAuto,
		"`mode` of progress: auto (a poller moves operations on) or manual (the waiting thread does; lowest latency)")
	fs.TextVar(&f.copyMode, "copy", fi.CopyAuto, "AF_XDP `mode`: auto, copy or zero-copy")
	fs.TextVar(&f.xdp, "xdp", fi.XDPAuto,
		"`mode` of XDP: native, generic (any interface, slower), auto (native; on a bond generic, to "+
			"follow fail-over) or any (auto, and generic where the driver has no native one)")
	fs.TextVar(&f.transport, "transport", fi.TransportAuto,
		"`transport` of frames: xdp, udp (UDP sockets: no privilege, slower) or auto (xdp if possible, and always "+
			"for a MAC address)")
	fs.IntVar(&f.queues, "queues", 0, "queues of the interface to use; 0: four queues, or all if there are fewer")
	fs.IntSliceVar(&f.cores, "cores", nil, "CPUs for the pollers of the queues, in turn; default: the kernel chooses")
	fs.DurationVar(&f.giveUp, "timeout", defaultTimeout, "give up operations after this silence of the peer")
	fs.StringVar(&f.control, "control", "",
		"go through the daemon with this control socket; default: the daemon of the interface, if one serves it")
	fs.StringVar(&f.directory, "directory", "", directoryUsage)
	fs.StringVar(&f.authKey, "auth-key-file", "",
		"prove the authorization key in this file, for regions that have one, and use no others")
	fs.BoolVar(&f.direct, "direct", false, "open the interface itself, even if a daemon serves it")
	fs.BoolVarP(&f.verbose, "verbose", "v", false,
		"say on stderr which interface, daemon and address the command uses, and why")
	f.borrowing.register(fs)
	fs.VisitAll(func(flag *pflag.Flag) { _ = fs.SetAnnotation(flag.Name, wayFlag, []string{}) }) // all are there
	complete(c, "progress", fi.ProgressAuto.String(), fi.ProgressManual.String())
	complete(c, "copy", fi.CopyAuto.String(), fi.CopyForce.String(), fi.ZeroCopyForce.String())
	complete(c, "xdp", fi.XDPAuto.String(), fi.XDPNative.String(), fi.XDPGeneric.String(), fi.XDPAny.String())
	complete(c, "transport", fi.TransportXDP.String(), fi.TransportUDP.String(), fi.TransportAuto.String())
	_ = c.RegisterFlagCompletionFunc("interface", completeInterfaces)
}

// complete offers the values of a flag to the shell.
func complete(c *cobra.Command, flag string, values ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// leastTimeout is the shortest --timeout: no peer answers faster for certain.
const leastTimeout = time.Millisecond

// usage refuses flags that contradict each other, or that are out of their range.
func (f *linkFlags) usage(c *cobra.Command) error {
	switch {
	case f.direct && f.control != "":
		return usage(c, "--control with --direct: want one of them")
	case f.transport == fi.TransportUDP && f.control != "":
		return usage(c, "--transport udp opens sockets here: want no --control, or leave the transport to the "+
			"daemon")
	case f.giveUp < leastTimeout:
		return usage(c, "--timeout %v: want at least %v", f.giveUp, leastTimeout)
	case slices.ContainsFunc(f.cores, forbidden):
		return usage(c, "--cores %s: want CPUs of %s, on which this process may run (see `taskset -p $$`)",
			strings.Trim(c.Flags().Lookup("cores").Value.String(), "[]"), allowed())
	case f.queues < 0 || f.queues > nic.MaxQueues:
		return usage(c, "--queues %d: want 0 for at most 4, or 1 to %d", f.queues, nic.MaxQueues)
	case f.transport != fi.TransportUDP:
		return nil
	}
	name := ""
	switch {
	case f.xdp != fi.XDPAuto:
		name = "xdp"
	case f.copyMode != fi.CopyAuto:
		name = "copy"
	case f.queues > 1:
		name = "queues"
	default:
		return nil
	}
	return usage(c, "--%s %s is for AF_XDP, and %s asks for UDP sockets: want one of them, or --transport xdp", name,
		c.Flags().Lookup(name).Value, cmp.Or(f.transportBy, "--transport udp"))
}

// attr turns the flags into attributes, for a peer with an IP address or with a MAC
// address: to that no frame goes over UDP.
func (f *linkFlags) attr(c *cobra.Command, isIP bool) (xdpfab.DomainAttr, error) {
	attr := xdpfab.DomainAttr{Progress: f.progress, Copy: f.copyMode, XDP: f.xdp, GiveUp: f.giveUp,
		Queues: f.queues, Cores: f.cores, Control: f.control, Transport: f.transport, EthernetOnly: !isIP}
	if f.authKey != "" {
		key, err := trust.Key(f.authKey)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: name the file with the region's key, which its owner has", err)
		}
		if err != nil {
			return attr, usage(c, "%s: %v", cmp.Or(f.authKeyBy, "--auth-key-file"), err)
		}
		attr.AuthKey = key
	}
	if err := f.borrows(c, &attr); err != nil {
		return attr, err
	}
	switch {
	case isIP && !f.borrow:
	case f.transport == fi.TransportUDP:
		by := "--transport udp"
		if f.transportBy != "" {
			by = "transport udp, which " + f.transportBy + " names"
		}
		return attr, usage(c, "%s: a MAC address is one of raw Ethernet; want the peer's IP address, or --transport "+
			"xdp", by)
	default:
		attr.Transport = fi.TransportXDP
	}
	switch {
	case f.direct:
		attr.Attach = fi.AttachNever
	case f.control != "":
		attr.Attach = fi.AttachAlways
	}
	return attr, nil
}

// check refuses flags that are for the process that has the interface, if that is a
// daemon.
func (f *linkFlags) check(c *cobra.Command, dom *xdpfab.Domain) error {
	socket := dom.Interface().Daemon
	if socket == "" {
		return nil
	}
	for _, name := range []string{"copy", "xdp", "queues", "transport"} {
		if c.Flags().Changed(name) {
			return usage(c, "--%s is for the process that has the interface, which is the daemon at %s: want it in "+
				"the daemon's configuration, or --direct here once the daemon has ended", name, socket)
		}
	}
	return nil
}

func (c *client) close() error { return closeAll(c.ctx, c.dom) }

// resent returns how many frames had to be sent again so far.
func (c *client) resent() uint64 {
	all, err := c.dom.Stats()
	if err != nil {
		return 0
	}
	return all["frames_resent"]
}

// regionFlags name the memory that operations are for.
type regionFlags struct {
	name string
	key  string
}

func (f *regionFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "region", "", "the name of the peer's memory region")
	c.Flags().StringVar(&f.key, "key", "", "key of the region, decimal or 0x…, instead of its name")
}

// check checks the flags before anything is opened.
func (f *regionFlags) check(c *cobra.Command) error {
	switch {
	case f.name != "" && f.key != "":
		return usage(c, "--region %q and --key %q each name a region: want one of them", f.name, f.key)
	case f.name == "" && f.key == "":
		return usage(c, "missing the region: want --region NAME or --key KEY%s; `xdpfab list PEER` shows those of a "+
			"peer", withRegion(c))
	}
	if len(f.name) > mr.MaxName {
		return usage(c, "region name of %d bytes: want at most %d", len(f.name), mr.MaxName)
	}
	if f.key != "" {
		if _, err := strconv.ParseUint(f.key, 0, 64); err != nil {
			return usage(c, "key %q: want a 64-bit number, decimal or 0x…", f.key)
		}
	}
	return nil
}

// flag is the flag that names the region.
func (f *regionFlags) flag() string {
	if f.key != "" {
		return "--key " + f.key
	}
	return "--region " + cmp.Or(f.name, "NAME")
}

// String names the region in output.
func (f *regionFlags) String() string {
	if f.name != "" {
		return f.name
	}
	return "key " + f.key
}

// find asks the peer for the region. A region that is given by its key has no size.
func (f *regionFlags) find(ctx context.Context, p *xdpfab.Peer) (xdpfab.RemoteRegion, error) {
	if f.name == "" {
		key, err := strconv.ParseUint(f.key, 0, 64)
		return xdpfab.RemoteRegion{Key: key}, err
	}
	r, err := p.Lookup(ctx, f.name)
	if err != nil {
		return r, f.missing(ctx, p, err)
	}
	return r, nil
}

// poster is an endpoint with a completion queue of its own, and one destination. One
// goroutine uses it.
type poster struct {
	ep   *fi.Endpoint
	cq   *fi.CompletionQueue
	dest fi.Address
	done [1]fi.Completion
}

// newPoster makes an endpoint for size operations in flight.
func (c *client) newPoster(ctx context.Context, size int) (*poster, error) {
	av, err := c.dom.NewAddressVector()
	if err != nil {
		return nil, err
	}
	cq, err := c.dom.NewCompletionQueue(fi.CQAttr{Size: size})
	if err != nil {
		return nil, err
	}
	ep, err := c.dom.NewEndpoint(xdpfab.EndpointAttr{Number: fi.AnyNumber, Size: size, InitiateOnly: true})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		return nil, err
	}
	dest, err := av.Insert(ctx, c.addr)
	return &poster{ep: ep, cq: cq, dest: dest}, err
}

// post hands an operation in the form given to the endpoint.
func (p *poster) post(form atomic.Func, m *fi.Msg, flags fi.OpFlags) error {
	m.Dest = p.dest
	switch form {
	case atomic.Base:
		return p.ep.Atomic(m, flags)
	case atomic.Fetch:
		return p.ep.FetchAtomic(m, flags)
	case atomic.Compare:
		return p.ep.CompareAtomic(m, flags)
	}
	return fmt.Errorf("form %v: %w", form, xdpfab.ErrOpNotSupported)
}

// do posts one operation and waits for its end. When the context ends first, the outcome
// is unknown and the poster is of no more use.
func (p *poster) do(ctx context.Context, form atomic.Func, m *fi.Msg) error {
	if err := p.post(form, m, 0); err != nil {
		return err
	}
	err := p.cq.Wait(ctx, 1)
	switch {
	case err != nil && ctx.Err() != nil && m.Op == atomic.Read:
		return fmt.Errorf("%w before the peer had answered", context.Cause(ctx))
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w: %w before the peer had answered: read the element to see whether the operation ran",
			xdpfab.ErrOutcomeUnknown, context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("%w: %w", xdpfab.ErrOutcomeUnknown, err)
	}
	if n, err := p.cq.Read(p.done[:]); n == 1 || err != nil && !errors.Is(err, fi.ErrErrorPending) {
		return err
	}
	e, ok := p.cq.ReadErr()
	if !ok {
		return fmt.Errorf("%w: a completion is missing", xdpfab.ErrOutcomeUnknown)
	}
	calls.HeardBefore(e.Err) // connect has dialled it
	if m.Op == atomic.Read {
		return withoutEffect(e.Err)
	}
	return e.Err
}
