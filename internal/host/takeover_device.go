// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// addDevice adds what the interface leaves. File descriptors become places.
func (h *Handover) addDevice(host *Host) error {
	from, is := host.n.Dev.(interface {
		Leave() (*port.Inheritance, error)
	})
	if !is {
		return nil
	}
	left, err := from.Leave()
	if err != nil {
		return err
	}
	h.State.Device, err = left.With(func(fd int) (int, error) { return h.own(fd), nil })
	return err
}

// device returns what the interface has left, with file descriptors that stay the
// handover's.
func (h *Handover) device() (*port.Inheritance, error) {
	if h.State.Device == nil {
		return nil, nil
	}
	return h.State.Device.With(h.file)
}

// openDevice opens the interface that the handover has, with the store of the
// resident state there.
func (h *Handover) openDevice(ctx context.Context, ifname string, o port.Options) (node.Device,
	*residence.Store, error) {
	err := h.tagsFit(o.VLAN)
	if err != nil {
		return nil, nil, fmt.Errorf("takeover: %w", err)
	}
	if o.Inherit, err = h.device(); err != nil {
		return nil, nil, fmt.Errorf("takeover: %w", err)
	}
	at, err := h.store(&o)
	if err != nil {
		return nil, nil, fmt.Errorf("takeover: %w", err)
	}
	// Each session stays on its queue. A former process may have had more by default.
	if had := len(h.State.Sessions); o.Queues == 0 && had > port.DefaultQueues {
		o.Queues = had
	}
	i, err := port.Open(ctx, ifname, o)
	if err != nil {
		return nil, nil, errors.Join(err, at.Close())
	}
	return node.NetInterface{Interface: i}, at, nil
}

// tagsFit refuses a policy by which frames of a session would no longer arrive.
func (h *Handover) tagsFit(v bpf.VLANPolicy) error {
	for _, pairs := range slices.Concat(h.State.Sessions, [][]engine.PairState{h.State.Idle}) {
		for _, p := range pairs {
			for _, s := range []*engine.TargetState{p.Current, p.Former} {
				if s != nil && s.Link.Medium == wire.OnEthernet && !v.Accepts(s.Link.VLAN) {
					return errno.Refuse(errno.NotImplemented,
						"the session of %v has frames of VLAN %d, which go to the kernel with %q: want "+
							"--vlan any, as before", s.From, s.Link.VLAN, v)
				}
			}
		}
	}
	return nil
}

// files returns file descriptors that have names, and stay the handover's.
func (h *Handover) files(at map[string]int) (map[string]int, error) {
	files := map[string]int{}
	for name, i := range at {
		var err error
		if files[name], err = h.file(i); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

// file returns a file descriptor, which stays the handover's.
func (h *Handover) file(at int) (int, error) {
	if at < 0 || at >= len(h.fds) {
		return -1, fmt.Errorf("file descriptor %d of %d is missing", at, len(h.fds))
	}
	return h.fds[at], nil
}
