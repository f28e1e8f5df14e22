// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Whatever a call refuses before anything is sent was not executed, and the error says
// so once at most.
func TestRefusedBeforeSending(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	c := ctx(t)
	dial := func() *xdpfab.Peer {
		p, err := f.client.Dial(c, f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p, gone := dial(), dial()
	r, err := p.Lookup(c, "r")
	if err != nil {
		t.Fatal(err)
	}
	w, v := xdpfab.WordAt[uint64](p, r, 0), xdpfab.VectorAt[uint64](p, r)
	left := xdpfab.WordAt[uint64](gone, r, 0)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	none := xdpfab.RemoteRegion{}
	for what, call := range map[string]func() error{
		"fetch of no operation":    func() error { _, err := w.Fetch(c, 99, 1); return err },
		"fetch of a compare":       func() error { _, err := w.Fetch(c, atomic.Cswap, 1); return err },
		"compare of a fetch":       func() error { _, err := w.Compare(c, atomic.Sum, 0, 1); return err },
		"field of no bits":         func() error { _, err := xdpfab.AddField(c, w, 64, 8, 1); return err },
		"bit beyond the word":      func() error { _, err := xdpfab.SetBit(c, w, 64); return err },
		"zero Remote":              func() error { _, err := xdpfab.Remote[uint64]{}.Add(c, 1); return err },
		"zero RemoteVector":        func() error { return xdpfab.RemoteVector[uint64]{}.Add(c, nil, nil, nil) },
		"word outside":             func() error { _, err := v.At(1 << 40).Load(c); return err },
		"word of no region":        func() error { _, err := xdpfab.WordAt[uint64](p, none, 0).Load(c); return err },
		"vector of no region":      func() error { _, err := xdpfab.VectorAt[uint64](p, none).At(0).Load(c); return err },
		"vector outside":           func() error { return v.Add(c, []uint64{1 << 40}, []uint64{1}, nil) },
		"vector of another length": func() error { return v.Add(c, []uint64{0, 1}, []uint64{1}, nil) },
		"read outside":             func() error { return p.Read(c, r, r.Size, make([]byte, 1)) },
		"write outside":            func() error { return p.Write(c, r, r.Size, make([]byte, 1)) },
		"read of no region":        func() error { return p.Read(c, none, 0, make([]byte, 1)) },
		"signal of no operation":   func() error { return p.WriteSignal(c, r, 0, nil, xdpfab.Signal{Region: r}) },
		"signal outside": func() error {
			return p.WriteSignal(c, r, 0, nil, xdpfab.Signal{Region: r, Index: r.Size / 8, Op: atomic.Sum})
		},
		"look-up of no name":       func() error { _, err := p.Lookup(c, ""); return err },
		"closed peer":              func() error { _, err := left.Add(c, 1); return err },
		"look-up by a closed peer": func() error { _, err := gone.Lookup(c, "r"); return err },
		"message by a closed peer": func() error { return gone.Send(c, []byte("m")) },
		"request by a closed peer": func() error { _, err := gone.Call(c, nil, nil); return err },
		"request beyond a frame":   func() error { _, err := p.Call(c, make([]byte, 1<<20), nil); return err },
		"context that ended before": func() error {
			ended, end := context.WithCancel(c)
			end()
			_, err := w.Add(ended, 1)
			return err
		},
	} {
		err := call()
		if !errors.Is(err, xdpfab.ErrNotExecuted) || errors.Is(err, xdpfab.ErrOutcomeUnknown) {
			t.Errorf("%s: %v: want it not executed", what, err)
		} else if n := strings.Count(err.Error(), "not executed"); n > 1 || strings.Contains(err.Error(), "outcome unknown") {
			t.Errorf("%s: %v: says its certainty %d times", what, err, n)
		}
	}
}
