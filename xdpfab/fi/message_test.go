// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// talker is an endpoint that sends messages and receives them.
type talker struct {
	ep   *fi.Endpoint
	av   *fi.AddressVector
	sent *fi.CompletionQueue
	got  *fi.CompletionQueue
	name string
}

// newTalker makes a talker. bind, in the place of sends, binds what else it has.
func newTalker(t testing.TB, d *xdpfab.Domain, attr fi.EndpointAttr, bind ...func(k *talker) error) *talker {
	t.Helper()
	attr.Number = fi.AnyNumber
	ep, err := d.NewEndpoint(attr)
	if err != nil {
		t.Fatal(err)
	}
	av, err1 := d.NewAddressVector()
	sent, err2 := d.NewCompletionQueue(fi.CQAttr{Size: 256})
	got, err3 := d.NewCompletionQueue(fi.CQAttr{Size: 256})
	if err := errors.Join(err1, err2, err3, ep.Bind(av, 0), ep.Bind(got, fi.BindRecv)); err != nil {
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
func sends(k *talker) error { return k.ep.Bind(k.sent, fi.BindTransmit) }

// knows returns the address of another talker, by the address that is given or its name.
func (k *talker) knows(t testing.TB, other *talker) fi.Address {
	t.Helper()
	a, err := k.av.Insert(ctx(t), other.name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// one waits for the next completion of a queue, with or without an error.
func one(t testing.TB, cq *fi.CompletionQueue) fi.Completion {
	t.Helper()
	var c [1]fi.Completion
	for {
		switch n, err := cq.Read(c[:]); {
		case errors.Is(err, fi.ErrErrorPending):
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
func success(t testing.TB, cq *fi.CompletionQueue) fi.Completion {
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
	for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		t.Run(progress.String(), func(t *testing.T) { testVethMessages(t, progress) })
	}
}

func testVethMessages(t *testing.T, progress fi.ProgressMode) {
	longest := reduced(1<<20, 1<<18)
	da, db, _ := onVeth(t, 1, fi.DomainAttr{Progress: progress}, fi.DomainAttr{})
	rng := rand.New(rand.NewPCG(9, uint64(progress)))
	for _, order := range []fi.Order{0, fi.OrderNone} {
		a, b := newTalker(t, da, fi.EndpointAttr{MsgOrder: order}), newTalker(t, db, fi.EndpointAttr{})
		dest, source := a.knows(t, b), b.knows(t, a)
		for i, n := range []int{0, 1, 80, 1400, 5000, 100_003, longest} {
			for _, tagged := range []bool{false, true} {
				for _, late := range []bool{false, true} {
					data, to := random(rng, n), make([]byte, n+10)
					m := fi.Message{Pieces: divide(rng, data, 1), Dest: dest, Tag: uint64(i) << 40, Data: 77, Context: n}
					r := fi.Receive{Pieces: divide(rng, to, 1), Tag: m.Tag, Context: &r0}
					send, receive := a.ep.Send, b.ep.Receive
					want := fi.CompletionMsg
					if tagged {
						send, receive, want = a.ep.SendTagged, b.ep.ReceiveTagged, fi.CompletionTagged
					}
					var err error
					if late {
						err = errors.Join(send(&m, fi.FlagRemoteCQData), receive(&r, 0))
					} else {
						err = errors.Join(receive(&r, 0), send(&m, fi.FlagRemoteCQData))
					}
					if err != nil {
						t.Fatal(err)
					}
					c := success(t, a.sent)
					if c.Context != n || c.Flags != want|fi.CompletionSend || c.Bytes != n || c.Source != dest {
						t.Fatalf("%d bytes sent: %+v", n, c)
					}
					c = success(t, b.got)
					if c.Context != any(&r0) || c.Flags != want|fi.CompletionRecv|fi.CompletionRemoteCQData || c.Bytes != n || c.Data != 77 ||
						c.Source != source || tagged && c.Tag != m.Tag || !bytes.Equal(to[:n], data) {
						t.Fatalf("%d bytes received: %+v", n, c)
					}
				}
			}
		}
	}
}

var r0 int // what a Context points to
