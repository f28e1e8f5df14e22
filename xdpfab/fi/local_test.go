// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// An endpoint reaches the others of its domain, and itself, by each of the domain's own
// addresses (FI_LOCAL_COMM): with the same order, fences, rights, completions and
// counters at both sides as over the network, and nothing of it leaves the interface.
func TestVethLocal(t *testing.T) {
	testnet.Require(t)
	for queues := 1; queues <= 2; queues++ {
		for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
			if queues > 1 && progress == fi.ProgressManual {
				continue
			}
			t.Run(fmt.Sprintf("%d queues, %v", queues, progress), func(t *testing.T) {
				pair := testnet.NewPair(t, testnet.Options{Queues: queues})
				wire := newTap(t, pair.B, pair.B.IfName)
				var d *xdpfab.Domain
				err := pair.A.Do(func() (err error) {
					d, err = xdpfab.Open(ctx(t), pair.A.IfName, fi.DomainAttr{Progress: progress})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				defer d.CloseAll()
				l := newLocal(t, d)
				for i, host := range []string{pair.A.MAC.String(), pair.A.IP4.String(), pair.A.IP6.String()} {
					l.reaches(t, fmt.Sprintf("%s/%d", host, l.other.Number()), uint64(2*i))
					l.reaches(t, fmt.Sprintf("%s/%d", host, l.ep.Number()), uint64(2*i+1))
				}
				if left := wire.take(); len(left) != 0 {
					t.Errorf("%d frames have left the interface, the first is %+v", len(left), left[0])
				}
				c, cancel := context.WithCancel(ctx(t))
				var dial sync.WaitGroup
				dial.Go(func() { _, _ = d.Dial(c, pair.B.MAC.String()) })
				testnet.Eventually(t, "a frame to another node leaves the interface", func() bool { return len(wire.take()) > 0 })
				cancel()
				dial.Wait()
			})
		}
	}
}

// local is a domain that talks to itself: ep posts, to other and to itself.
type local struct {
	d             *xdpfab.Domain
	av            *fi.AddressVector
	cq            *fi.CompletionQueue
	ep, other     *fi.Endpoint
	region        *mr.Region
	readable      *mr.Region // by peers, and no more
	sent, arrived *fi.Counter
}

func newLocal(t *testing.T, d *xdpfab.Domain) *local {
	t.Helper()
	l := &local{d: d}
	var errs [9]error
	l.av, errs[0] = d.NewAddressVector()
	l.cq, errs[1] = d.NewCompletionQueue(fi.CQAttr{})
	l.ep, errs[2] = d.NewEndpoint(fi.EndpointAttr{Number: 5})
	l.other, errs[3] = d.NewEndpoint(fi.EndpointAttr{Number: 6})
	l.sent, errs[4] = d.NewCounter()
	l.arrived, errs[5] = d.NewCounter()
	l.region, errs[6] = d.NewRegion("local", 4096)
	m, err := mr.Alloc(64, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l.readable, errs[7] = d.Register(m, mr.Options{Access: mr.RemoteRead})
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(l.ep.Bind(l.av, 0), l.ep.Bind(l.cq, 0), l.ep.Bind(l.sent, fi.BindWrite), d.BindRegion(l.region, l.arrived, fi.BindRemoteWrite),
		l.ep.Enable(), l.other.Enable())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// reaches checks everything that operations by an address promise; word is an unused one.
func (l *local) reaches(t *testing.T, addr string, word uint64) {
	t.Helper()
	dest, err := l.av.Insert(ctx(t), addr)
	if err != nil {
		t.Fatalf("%s: %v", addr, err)
	}
	sent, arrived := l.sent.Read(), l.arrived.Read()
	const n = 300
	value, was := make([]byte, 8), make([][8]byte, n)
	for i := range n { // each write is read back by the operation after it
		binary.LittleEndian.PutUint64(value, uint64(i)+1)
		m := fi.Msg{Buf: value, Dest: dest, Key: l.region.Key(), Offset: 8 * word, Datatype: atomic.Uint64, Op: atomic.Write, Context: i}
		flags := fi.FlagInject | fi.FlagCompletion
		if i%7 == 0 {
			flags |= fi.FlagFence
		}
		if err := l.ep.Atomic(&m, flags); err != nil {
			t.Fatalf("%s: write %d: %v", addr, i, err)
		}
		m.Buf, m.Op, m.Result, m.Context = nil, atomic.Read, was[i][:], n+i
		if err := l.ep.FetchAtomic(&m, fi.FlagCompletion); err != nil {
			t.Fatalf("%s: read %d: %v", addr, i, err)
		}
	}
	seen := map[int]bool{}
	for done := make([]fi.Completion, 64); len(seen) < 2*n; {
		if err := l.cq.Wait(ctx(t), 1); err != nil {
			t.Fatalf("%s: %v", addr, err)
		}
		k, err := l.cq.Read(done)
		if err != nil {
			t.Fatalf("%s: %v", addr, err)
		}
		for _, c := range done[:k] {
			if i := c.Context.(int); seen[i] || c.Source != dest {
				t.Fatalf("%s: completion %d of address %d comes twice or for another address than %d", addr, i, c.Source, dest)
			} else {
				seen[i] = true
			}
		}
	}
	for i := range n {
		if got := binary.LittleEndian.Uint64(was[i][:]); got != uint64(i)+1 {
			t.Errorf("%s: read %d found %d, want what the operation before it wrote", addr, i, got)
			break
		}
	}
	if err := errors.Join(l.sent.Wait(ctx(t), sent+n), l.arrived.Wait(ctx(t), arrived+n)); err != nil {
		t.Errorf("%s: counters %d and %d, want %d more than %d and %d: %v", addr, l.sent.Read(), l.arrived.Read(), n, sent, arrived, err)
	}
	for name, c := range map[string]struct {
		key    uint64
		offset uint64
		want   error
	}{
		"no key":     {l.region.Key() + 1, 0, fi.ErrNoKey},
		"no right":   {l.readable.Key(), 0, fi.ErrAccess},
		"beyond":     {l.region.Key(), 1 << 20, fi.ErrOutOfBounds},
		"misaligned": {l.region.Key(), 4, fi.ErrMisaligned},
	} {
		m := fi.Msg{Buf: value, Dest: dest, Key: c.key, Offset: c.offset, Datatype: atomic.Uint64, Op: atomic.Write}
		if err := l.ep.Atomic(&m, fi.FlagCompletion); err != nil {
			t.Fatalf("%s: %s: %v", addr, name, err)
		}
		if err := l.cq.Wait(ctx(t), 1); err != nil && !errors.Is(err, fi.ErrErrorPending) {
			t.Fatalf("%s: %s: %v", addr, name, err)
		}
		if c2, ok := l.cq.ReadErr(); !ok || !errors.Is(c2.Err, c.want) || !errors.Is(c2.Err, fi.ErrNotExecuted) {
			t.Errorf("%s: %s: %v, %t; want %v", addr, name, c2.Err, ok, c.want)
		}
	}
}
