// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// talker is an endpoint that sends messages and receives them.
type talker struct {
	ep   *xdpfab.Endpoint
	av   *xdpfab.AddressVector
	sent *xdpfab.CompletionQueue
	got  *xdpfab.CompletionQueue
	name string
}

// newTalker makes a talker. bind, in the place of sends, binds what else it has.
func newTalker(t testing.TB, d *xdpfab.Domain, attr xdpfab.EndpointAttr, bind ...func(k *talker) error) *talker {
	t.Helper()
	attr.Number = xdpfab.AnyNumber
	ep, err := d.NewEndpoint(attr)
	if err != nil {
		t.Fatal(err)
	}
	av, err1 := d.NewAddressVector()
	sent, err2 := d.NewCompletionQueue(xdpfab.CQAttr{Size: 256})
	got, err3 := d.NewCompletionQueue(xdpfab.CQAttr{Size: 256})
	if err := errors.Join(err1, err2, err3, ep.Bind(av, 0), ep.Bind(got, xdpfab.BindRecv)); err != nil {
		t.Fatal(err)
	}
	k := &talker{ep, av, sent, got, d.Name(ep.Number())}
	if len(bind) == 0 {
		bind = append(bind, sends)
	}
	for _, b := range bind {
		if err := b(k); err != nil {
			t.Fatal(err)
		}
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	return k
}

// sends binds the queue of what the talker sends.
func sends(k *talker) error { return k.ep.Bind(k.sent, xdpfab.BindTransmit) }

// knows returns the address of another talker, by the address that is given or its name.
func (k *talker) knows(t testing.TB, other *talker) xdpfab.Address {
	t.Helper()
	a, err := k.av.Insert(ctx(t), other.name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// one waits for the next completion of a queue, with or without an error.
func one(t testing.TB, cq *xdpfab.CompletionQueue) xdpfab.Completion {
	t.Helper()
	var c [1]xdpfab.Completion
	for {
		switch n, err := cq.Read(c[:]); {
		case errors.Is(err, xdpfab.ErrErrorPending):
			c, ok := cq.ReadErr()
			if !ok {
				t.Fatal("an error is pending, and there is none")
			}
			return c
		case err != nil:
			t.Fatal(err)
		case n == 1:
			return c[0]
		}
		if err := cq.Wait(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
	}
}

// success is one for a completion without an error.
func success(t testing.TB, cq *xdpfab.CompletionQueue) xdpfab.Completion {
	t.Helper()
	c := one(t, cq)
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	return c
}

// Messages of every length and form arrive over real interfaces: with either progress,
// with order and without.
func TestVethMessages(t *testing.T) {
	for _, progress := range []xdpfab.ProgressMode{xdpfab.ProgressAuto, xdpfab.ProgressManual} {
		t.Run(progress.String(), func(t *testing.T) { testVethMessages(t, progress) })
	}
}

func testVethMessages(t *testing.T, progress xdpfab.ProgressMode) {
	longest := reduced(1<<20, 1<<18)
	da, db, _ := onVeth(t, 1, xdpfab.DomainAttr{UDP: true, Progress: progress}, xdpfab.DomainAttr{UDP: true})
	rng := rand.New(rand.NewPCG(9, uint64(progress)))
	for _, order := range []xdpfab.Order{0, xdpfab.OrderNone} {
		a, b := newTalker(t, da, xdpfab.EndpointAttr{MsgOrder: order}), newTalker(t, db, xdpfab.EndpointAttr{})
		dest, source := a.knows(t, b), b.knows(t, a)
		for i, n := range []int{0, 1, 80, 1400, 5000, 100_003, longest} {
			for _, tagged := range []bool{false, true} {
				for _, late := range []bool{false, true} {
					data, to := random(rng, n), make([]byte, n+10)
					m := xdpfab.Message{Pieces: divide(rng, data, 1), Dest: dest, Tag: uint64(i) << 40, Data: 77, Context: n}
					r := xdpfab.Receive{Pieces: divide(rng, to, 1), Tag: m.Tag, Context: &r0}
					send, receive := a.ep.Send, b.ep.Receive
					want := xdpfab.CompletionMsg
					if tagged {
						send, receive, want = a.ep.SendTagged, b.ep.ReceiveTagged, xdpfab.CompletionTagged
					}
					var err error
					if late {
						err = errors.Join(send(&m, xdpfab.FlagRemoteCQData), receive(&r, 0))
					} else {
						err = errors.Join(receive(&r, 0), send(&m, xdpfab.FlagRemoteCQData))
					}
					if err != nil {
						t.Fatal(err)
					}
					c := success(t, a.sent)
					if c.Context != n || c.Flags != want|xdpfab.CompletionSend || c.Bytes != n || c.Source != dest {
						t.Fatalf("%d bytes sent: %+v", n, c)
					}
					c = success(t, b.got)
					if c.Context != any(&r0) || c.Flags != want|xdpfab.CompletionRecv|xdpfab.CompletionRemoteCQData || c.Bytes != n || c.Data != 77 ||
						c.Source != source || tagged && c.Tag != m.Tag || !bytes.Equal(to[:n], data) {
						t.Fatalf("%d bytes received: %+v", n, c)
					}
				}
			}
		}
	}
}

var r0 int // what a Context points to
