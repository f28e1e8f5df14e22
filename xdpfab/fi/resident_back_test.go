// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// tryHot makes the first region as it was, and gives it up again.
func (e *estate) tryHot(d *xdpfab.Domain) error {
	m, err := d.NewResidentMemory("hot", 4096)
	if err != nil {
		return err
	}
	o := e.keys["hot"]
	o.Name, o.Access = "hot", mr.RemoteRead|mr.RemoteWrite
	r, err := d.Register(m, o)
	if err != nil {
		return errors.Join(err, m.Close())
	}
	return errors.Join(r.Close(), m.Close())
}

// A domain that closes a region and its memory before Resume takes nothing from the
// former process: the program goes on executing, and both are there for the next domain.
func TestResidentGivenBack(t *testing.T) {
	for name, pinned := range map[string]bool{"pinned": true, "not pinned": false} {
		t.Run(name, func(t *testing.T) {
			net := testnet.NewPair(t, testnet.Options{})
			e := newEstate(t, net.B, fi.DomainAttr{ResidentLeave: pinned}, pinned)
			p, _ := e.dialBoth(net.A)
			hot := add(t, p, "hot")
			hot.more()
			h, enough := e.handOver(), errors.New("no longer wanted")
			d, err := e.take(h, e.attr, func(d *xdpfab.Domain) error {
				return errors.Join(e.tryHot(d), e.tryHot(d), enough)
			})
			if d != nil || err == nil || err.Error() != "xdpfab: takeover: "+enough.Error() {
				t.Fatalf("%v; want nothing but %q", err, enough)
			}
			hot.more() // nobody is there
			e.goOn(h)
			hot.more()
			hot.end()
			if !pinned {
				return
			}
			if err := e.dom.CloseAll(); err != nil { // as a death
				t.Fatal(err)
			}
			e.forget()
			d, err = e.tryOpen(e.attr)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(e.tryHot(d), d.CloseAll()); err != nil {
				t.Fatal(err)
			}
			if d, err = e.tryOpen(e.attr); err == nil {
				err = e.furnish(d)
			}
			if err != nil {
				t.Fatal(err)
			}
			e.has(d)
			d.Resume()
			if sum := binary.NativeEndian.Uint64(e.memories[0].Bytes()); sum != hot.n.Load() {
				t.Errorf("the memory holds %d, want %d", sum, hot.n.Load())
			}
		})
	}
}
