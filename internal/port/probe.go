// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/xsk"
)

// Probed is what an interface gave when it was opened for an instant.
type Probed struct {
	// Interface is closed again; it still describes itself.
	*Interface
	// Refused reports what was tried before, and why the kernel or the driver refused it.
	Refused []error
	// Opening is how long it took until the interface could send.
	Opening time.Duration
}

// Probe opens an interface as Open does, closes it again at once, and tells what it gave:
// with zero-copy if that can be had, or else without; in native mode if that can be had,
// or else in generic mode, whatever Options.XDP says. Meanwhile all other traffic
// reaches the kernel as before; but drivers of NICs may set their queues up anew, and
// lose the carrier for a while, for which Probe waits in the end.
//
// Like Open, it refuses an interface that has an XDP program, with bpf.ErrBusy. Nothing
// is left behind, also when the process is killed: what attaches the program, and the
// sockets, end with it. The context is looked at between two attempts, and ends waits for
// the carrier.
func Probe(ctx context.Context, ifname string, o Options) (Probed, error) {
	var p Probed
	n, err := nic.Inspect(ifname)
	if err != nil {
		return p, err
	}
	r, err := route.New(n.Index, 0)
	if err != nil {
		return p, err
	}
	defer r.Close()
	carrier := sends(r)
	want := o.Copy
	if o.XDP = bpf.Native; want == xsk.Auto {
		o.Copy = xsk.ZeroCopy // by itself the kernel falls back to copy mode without a reason
	}
	for {
		if err := ctx.Err(); err != nil {
			return p, fmt.Errorf("probing %s: %w", ifname, err)
		}
		begin := time.Now()
		i, err := Open(ctx, ifname, o)
		if err == nil {
			p.Interface, p.Opening = i, time.Since(begin)
			err = i.Close()
			restored(ctx, r, n.Driver, carrier)
			return p, err
		}
		restored(ctx, r, n.Driver, carrier)
		switch {
		case errors.Is(err, bpf.ErrNoNative) && o.XDP == bpf.Native:
			o.XDP, o.Copy = bpf.Generic, want
		case o.Copy != want:
			o.Copy = want
		default:
			return p, err
		}
		p.Refused = append(p.Refused, err)
	}
}

// restored waits for the carrier, if there was one: a driver that sets its queues up anew
// when it gets a program does so again when the program goes.
func restored(ctx context.Context, r *route.Resolver, driver string, carrier bool) {
	if carrier {
		_ = awaitCarrier(ctx, r, driver, carrier) // the caller looks at the context
	}
}
