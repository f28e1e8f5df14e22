// SPDX-License-Identifier: Apache-2.0

package udpnode

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/udpport"
	"github.com/xdpfab/xdpfab/xsk"
)

// Transport is what carries the packets of a node.
type Transport uint8

// The transports; Auto is XDP where that can be had, otherwise UDP.
const (
	XDP Transport = iota
	UDP
	Auto
)

// String returns the text.
func (t Transport) String() string { return [...]string{XDP: "xdp", UDP: "udp", Auto: "auto"}[t] }

// Wants are the choices of how an interface is opened that only an XDP program can meet.
type Wants struct {
	Queues, Lend int
	Spread, Copy bool
	Pin          string
}

// what names the first of the choices that only an XDP program can meet; empty if there
// is none.
func (w *Wants) what() string {
	switch {
	case w.Queues > 1:
		return "second queue (DomainAttr.Queues)"
	case w.Lend > 0:
		return "queues to lend (DomainAttr.Lend)"
	case w.Spread:
		return "queues to spread sessions over (DomainAttr.Spread)"
	case w.Pin != "":
		return "resident regions to pin (DomainAttr.ResidentPin)"
	case w.Copy:
		return "copy mode of AF_XDP (DomainAttr.Copy)"
	}
	return ""
}

// check refuses what only an XDP program can do.
func (w *Wants) check() error {
	what := w.what()
	switch {
	case w.Queues > 1:
		return errno.Refuse(errno.NotImplemented,
			"domain over UDP sockets: %d queues: want 1, or 0, since it has one", w.Queues)
	case what == "":
		return nil
	}
	return errno.Refuse(errno.NotImplemented,
		"UDP sockets have no %s: want none, or AF_XDP (--transport xdp, DomainAttr.Transport)", what)
}

// OpenSockets opens an interface by UDP sockets, unless an XDP program takes their
// packets. noXDP is why it is not AF_XDP.
func OpenSockets(ctx context.Context, name string, w Wants, noXDP error) (node.Device, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	dev, err := udpport.Open(name, udpport.Options{})
	if errors.Is(err, udpport.ErrInUse) {
		err = &busyError{err, holder(err)}
	}
	if err != nil {
		return nil, err
	}
	i := dev.Interface()
	if i.Flags&net.FlagUp == 0 {
		return nil, errors.Join(fmt.Errorf("%s: %w: `ip link set dev %s up`", i.Name, xsk.ErrInterfaceDown, i.Name),
			dev.Close())
	}
	beside, err := hears(ctx, i.Name, i.Index, dev.Addrs())
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return &Device{Device: dev, NoXDP: noXDP, Beside: beside}, nil
}

// busyError is an error that is errno.Busy, too, which its text says already.
type busyError struct {
	error
	pid int // of who has it, if this user may see that; else 0
}

// Error names who has it.
func (e *busyError) Error() string {
	if taken, is := errors.AsType[*udpport.InUseError](e.error); is && e.pid != 0 {
		return taken.Taken() + ": " + whoHas(e.pid)
	}
	return e.error.Error()
}

// Taker returns the process that has a port which could not be had, for that reason, 0 if
// this user may not see it.
func Taker(err error) int {
	if b, is := errors.AsType[*busyError](err); is {
		return b.pid
	}
	return 0
}

func (e *busyError) Unwrap() []error { return []error{errno.Busy, e.error} }
