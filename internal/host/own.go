// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xsk"
)

// The daemon has a node for its guests, and for regions of its own, which peers reach by
// node.Serve. It posts and receives nothing itself.

// Options are how an interface is opened, and how its node works. DomainAttr says what
// the values mean.
type Options struct {
	Queues, Lend int
	Copy         xsk.Mode
	XDP          bpf.Mode
	UDP          bool
	BusyPoll     xsk.BusyPoll
	Remember     string // port.Options.Remember
	VLAN         bpf.VLANPolicy
	Pin          string // DomainAttr.ResidentPin
	Transport    udpnode.Transport
	node.Config
}

func (o *Options) port() port.Options {
	return port.Options{Queues: o.Queues, Lend: o.Lend, Copy: o.Copy, XDP: o.XDP, UDP: o.UDP,
		BusyPoll: o.BusyPoll, Remember: o.Remember, VLAN: o.VLAN, Execute: true}
}

// Open puts an interface to use for guests. The node takes no packets until its Resume
// if there is a Pin.
func Open(ctx context.Context, ifname string, o Options) (*Host, error) {
	var err error
	if o.Config, err = o.WithDefaults(); err != nil {
		return nil, err
	}
	dev, at, err := udpnode.Open(ctx, ifname, o.Transport, o.Pin, o.Spread, o.port())
	if err != nil {
		return nil, fmt.Errorf("xdpfab: %w", err)
	}
	return open(dev, o.Config, at, 0)
}

// New is Open for a device.
func New(dev node.Device, c node.Config) (*Host, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	return open(dev, c, nil, 0)
}

// open makes a node of a device, which is the node's from here on, and the host of its
// guests. See Residence.Start.
func open(dev node.Device, c node.Config, at *residence.Store, life uint64) (*Host, error) {
	var own owner
	n := node.New(dev, &own)
	n.Config = c
	own.Host = On(n)
	if i := dev.Info().Index; i > 0 {
		n.Place = node.Here(i)
	}
	resident := residence.New(n, at)
	if err := resident.Start(life); err != nil {
		return nil, fmt.Errorf("xdpfab: %w", err)
	}
	dev.Watch(n.Happened)
	if at != nil {
		if err := resident.SettleIn(); err != nil {
			return nil, errors.Join(err, own.Close())
		}
	}
	return own.Host, nil
}

// owner is the host as the node asks it that it has for itself.
type owner struct{ *Host }

func (owner) Lost(error) {}

func (o *owner) CloseTenants() { o.n.EndServing() }

func (owner) WakeObjects() {}

func (o *owner) CloseAll() error { return o.Close() }

func (owner) Roomy() {}

// Node returns the node whose guests the host has.
func (h *Host) Node() *node.Node { return h.n }

// Folder returns where what is resident outlives the process; empty if it does not.
func (h *Host) Folder() string { return residence.Of(h.n).Folder() }

// Register lets peers operate on memory of the host's own.
func (h *Host) Register(m *mr.Memory, o mr.Options) (*mr.Region, error) {
	h.n.Mu.Lock()
	defer h.n.Mu.Unlock()
	return h.n.Register(m, o)
}

// ResidentMemory makes memory for regions that the XDP program executes.
func (h *Host) ResidentMemory(name string, size int) (*mr.Memory, error) {
	h.n.Mu.Lock()
	defer h.n.Mu.Unlock()
	m, err := residence.Of(h.n).ResidentMemory(name, size)
	if err != nil {
		return nil, fmt.Errorf("xdpfab: resident memory %q: %w", name, err)
	}
	return m, nil
}

// WasLeft reports whether a former process left memory of ResidentMemory.
func (h *Host) WasLeft(m *mr.Memory) bool { return residence.Of(h.n).WasLeft(m) }

// ShowResident has the engines see what is for resident regions, or no longer.
func (h *Host) ShowResident(on bool) { residence.Of(h.n).Show(on) }

// Close ends the node that the host has for itself: its guests, and every session.
// Closing twice is no error.
func (h *Host) Close() error {
	if h.closed.Swap(true) {
		return nil
	}
	h.n.Residents.Detach()
	h.n.SetClosed("the daemon")
	h.n.Dev.Part()
	h.n.Quiesce()
	return h.n.Finish()
}
