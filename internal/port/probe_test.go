// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"context"
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xsk"
)

func probe(ctx context.Context, side *testnet.Side, o Options) (p Probed, err error) {
	_ = side.Do(func() error {
		p, err = Probe(ctx, side.IfName, o)
		return nil
	})
	return p, err
}

func TestProbe(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	got, err := probe(t.Context(), p.A, Options{})
	if err != nil {
		t.Fatal(err)
	}
	clean(t, p.A)
	granted := testnet.Granted(t)
	m := got.Modes()
	if m.XDP.String() != granted.XDP || m.Copy.String() != granted.Copy || len(got.Queues()) != 1 || got.Opening <= 0 {
		t.Errorf("%+v, %d queues, after %v; want %+v, 1", m, len(got.Queues()), got.Opening, granted)
	}
	refused := errors.Join(got.Refused...)
	if errors.Is(refused, xsk.ErrZeroCopy) != (m.XDP == bpf.Native && m.Copy == xsk.Copy) || errors.Is(refused, bpf.ErrNoNative) != (m.XDP == bpf.Generic) || len(got.Refused) > 1 {
		t.Errorf("%+v, refused %v: want the reason of each mode that was refused", m, got.Refused)
	}
	a := open(t, p.A, Options{XDP: bpf.Any}) // at once
	if a.Modes().Copy != m.Copy || a.Chunk() != got.Chunk() {
		t.Errorf("the probe found %v and buffers of %d, opening gives %v and %d", m.Copy, got.Chunk(), a.Modes().Copy, a.Chunk())
	}
	// Now the interface is taken, and left alone.
	before := attached(t, p.A)
	if _, err := probe(t.Context(), p.A, Options{}); !errors.Is(err, bpf.ErrBusy) || attached(t, p.A) != before {
		t.Errorf("probing an interface in use: %v, program %d, was %d", err, attached(t, p.A), before)
	}
}

// A bridge has no native XDP.
func TestProbeGeneric(t *testing.T) {
	p := testnet.NewVeth(t, testnet.Options{})
	side := *p.A
	side.IfName = "br0"
	configure(t, p.A, func(h *netlink.Handle, _ netlink.Link) error {
		d := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
		d.Name = side.IfName
		return errors.Join(h.LinkAdd(d), h.LinkSetUp(d))
	})
	got, err := probe(t.Context(), &side, Options{RingSize: 32})
	if err != nil || got.Modes().XDP != bpf.Generic || got.Modes().Copy != xsk.Copy || len(got.Refused) != 1 || !errors.Is(got.Refused[0], bpf.ErrNoNative) {
		t.Errorf("%+v, %v; want generic XDP, since native is refused", got, err)
	}
	clean(t, &side)
}

// wavering is a context that ends when it is looked at for the second time: after the
// first attempt.
type wavering struct {
	context.Context
	looks int
}

func (w *wavering) Err() error {
	if w.looks++; w.looks > 1 {
		return context.Canceled
	}
	return nil
}

func TestProbeEndsEarly(t *testing.T) {
	p := testnet.NewVeth(t, testnet.Options{})
	w := &wavering{Context: t.Context()}
	got, err := probe(w, p.A, Options{RingSize: 32})
	if !errors.Is(err, context.Canceled) || len(got.Refused) != 1 {
		t.Errorf("interrupted after %v: %v", got.Refused, err)
	}
	clean(t, p.A)
	configure(t, p.B, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetMTU(l, 3822) })
	if _, err := probe(t.Context(), p.A, Options{RingSize: 32}); !errors.Is(err, unix.ERANGE) {
		t.Errorf("the peer's MTU is too large: %v", err)
	}
	clean(t, p.A)
	if _, err := probe(t.Context(), &testnet.Side{NS: p.A.NS, IfName: "nosuch0"}, Options{}); !errors.Is(err, xsk.ErrNoInterface) {
		t.Errorf("no interface: %v", err)
	}
}
