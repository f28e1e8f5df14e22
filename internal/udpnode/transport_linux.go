// SPDX-License-Identifier: Apache-2.0

package udpnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/udpport"
	"github.com/xdpfab/xdpfab/xsk"
)

// Open opens an interface by a transport, with the store of what is resident there: see
// residence.Open. Auto makes no store on UDP sockets.
func Open(ctx context.Context, ifname string, t Transport, pin string, spread bool, o port.Options) (
	node.Device, *residence.Store, error,
) {
	w := Wants{Queues: o.Queues, Lend: o.Lend, Spread: spread, Copy: o.Copy != xsk.Auto, Pin: pin}
	if t == UDP {
		dev, err := OpenSockets(ctx, ifname, w, nil)
		return dev, nil, err
	}
	dev, at, err := residence.Open(ctx, ifname, pin, o)
	if errors.Is(err, port.ErrSockets) {
		err = &busyError{err, 0}
	}
	switch {
	case err == nil, taken(err), ctx.Err() != nil:
		return dev, at, err
	case t == XDP:
		return nil, nil, remedy(err)
	}
	w.Pin = ""
	udp, second := OpenSockets(ctx, ifname, w, err)
	switch {
	case errors.Is(second, udpport.ErrInUse): // whoever has the port is in the way of AF_XDP, too
		return nil, nil, second
	case second != nil && slices.ContainsFunc(anyTransport, func(is error) bool { return errors.Is(err, is) }):
		return nil, nil, err
	case second != nil && w.what() != "":
		return nil, nil, fmt.Errorf("%w; UDP sockets would do without that, but have no %s: leave that out to use them",
			err, w.what())
	case second != nil:
		return nil, nil, fmt.Errorf("%w; nor by UDP sockets: %w", err, second)
	}
	return udp, nil, nil
}

// anyTransport are the errors that no transport changes.
var anyTransport = []error{xsk.ErrNoInterface, xsk.ErrNoQueue, xsk.ErrInterfaceDown, xsk.ErrZeroCopy}

// taken reports whether another xdpfab has the interface, or may have it: its XDP program
// would take the frames before UDP sockets see them.
func taken(err error) bool {
	b := new(bpf.BusyError)
	if errors.Is(err, port.ErrSockets) {
		return true
	}
	return errors.As(err, &b) && (b.Name == "" || b.Name == nic.ProgramName) || errors.Is(err, xsk.ErrQueueBusy)
}

// remedy adds to the error of an interface that has no AF_XDP, or not for this process,
// what does without.
func remedy(err error) error {
	if errors.As(err, new(*residence.FolderError)) {
		return err // UDP sockets have no resident regions
	}
	for _, lack := range []error{
		fs.ErrPermission, xsk.ErrPermission, xsk.ErrMemlock, xsk.ErrUnsupported, bpf.ErrNoNative, bpf.ErrKernel,
		nic.ErrNotEthernet,
	} {
		if errors.Is(err, lack) {
			return fmt.Errorf("%w; or use UDP sockets, which are slower: DomainAttr.Transport (TransportAuto) or "+
				"--transport udp", err)
		}
	}
	return err
}
