// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// household is a program with an object of each kind, and a peer that uses them.
type household struct {
	*succession
	*load
	t       *testing.T
	g, b    *xdpfab.Domain
	theirs  *mr.Region // of the peer, with a word for each endpoint that adds
	kept    *mr.Region // of the program, with a word for each way
	counted *mr.Region // likewise, with a counter
	dest    fi.Address // of the peer, in the program's address vectors
	used    uint64     // words of theirs
	ways    uint64     // words of the program's regions that the peer adds to
	tally   [2]*fi.Counter
	sep     *fi.ScalableEndpoint
	here    *caller
	there   *caller

	borrowing
}

func must[T any](t *testing.T) func(T, error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func (h *household) ok(errs ...error) {
	h.t.Helper()
	if err := errors.Join(errs...); err != nil {
		h.t.Fatal(err)
	}
}

func newHousehold(t *testing.T, s *succession, b *xdpfab.Domain) *household {
	t.Helper()
	s.limits = host.GuestLimits{Kept: 4096, Queues: 1, Rule: "rule 7"}
	h := &household{succession: s, load: &load{t: t}, t: t, b: b, g: guestBy(t, s.connect, fi.DomainAttr{}, nil)}
	region := must[*mr.Region](t)
	h.kept, h.theirs = region(h.g.NewRegion("kept", 4096)), region(b.NewRegion("theirs", 4096))
	h.counted = region(h.g.NewRegion("counted", 4096)) // one that is kept cannot be
	h.ok(h.g.Keep(h.kept))
	serveAt(t, b, 6)
	return h
}

// adds has the peer add to the next word of a region of the program.
func (h *household) adds(to, region string) {
	h.t.Helper()
	p := must[*xdpfab.Peer](h.t)(h.b.Dial(h.t.Context(), to))
	word := must[xdpfab.Remote[uint64]](h.t)(xdpfab.Word[uint64](h.t.Context(), p, region, h.ways))
	h.ways++
	h.loop("add at "+to, func(i uint64) error {
		if sum, err := word.Add(h.t.Context(), 1); err != nil || sum != i+1 {
			return fmt.Errorf("sum %d, want %d: %w", sum, i+1, err)
		}
		return nil
	})
}

// posts has an endpoint of the program add to a word of the peer's.
func (h *household) posts(ep *fi.Endpoint, cq *fi.CompletionQueue, dest fi.Address) {
	h.fetches(ep, cq, fi.Msg{Dest: dest, Key: h.theirs.Key(), Offset: 8 * h.used})
	h.used++
}

// observed is a plain endpoint, with counters of what peers do by it and to the region.
func (h *household) observed() {
	h.t.Helper()
	counter := must[*fi.Counter](h.t)
	h.tally = [2]*fi.Counter{counter(h.g.NewCounter()), counter(h.g.NewCounter())}
	ep := must[*fi.Endpoint](h.t)(h.g.NewEndpoint(fi.EndpointAttr{Number: 7}))
	h.ok(ep.Bind(h.tally[0], fi.BindRemoteRead), ep.Enable(), h.g.BindRegion(h.counted, h.tally[1], fi.BindRemoteRead))
	h.adds(h.g.Name(7), "counted")
}

// scalable is a scalable endpoint, whose contexts add and are added by.
func (h *household) scalable() {
	h.t.Helper()
	sep, tx := scalableGuest(h.t, h.g, 20)
	h.sep, h.dest = sep, must[fi.Address](h.t)(sep.AV().Insert(h.t.Context(), h.b.Name(6)))
	h.posts(tx, tx.CQ(), h.dest)
	h.adds(h.g.Name(20), "kept")
	h.adds(h.g.Name(21), "counted")
}

// transmits is two endpoints with a shared transmit context, and a counter of what they
// have done.
func (h *household) transmits() (done *fi.Counter) {
	h.t.Helper()
	x := must[*fi.SharedTransmit](h.t)(h.g.NewSharedTransmit(fi.SharedTransmitAttr{Size: 8}))
	done = must[*fi.Counter](h.t)(h.g.NewCounter())
	for range 2 {
		av := must[*fi.AddressVector](h.t)(h.g.NewAddressVector())
		cq := must[*fi.CompletionQueue](h.t)(h.g.NewCompletionQueue(fi.CQAttr{}))
		ep := must[*fi.Endpoint](h.t)(h.g.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber}))
		h.ok(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Bind(x, 0), ep.Bind(done, fi.BindRead), ep.Enable())
		h.posts(ep, cq, must[fi.Address](h.t)(av.Insert(h.t.Context(), h.b.Name(6))))
	}
	return done
}

// receives is two endpoints with a shared receive context, to which the peer sends in
// turn.
func (h *household) receives() {
	h.t.Helper()
	got := must[*fi.CompletionQueue](h.t)(h.g.NewCompletionQueue(fi.CQAttr{}))
	x := must[*fi.SharedReceive](h.t)(h.g.NewSharedReceive(fi.SharedReceiveAttr{Queue: got}))
	av := must[*fi.AddressVector](h.t)(h.b.NewAddressVector())
	sent := must[*fi.CompletionQueue](h.t)(h.b.NewCompletionQueue(fi.CQAttr{}))
	from := must[*fi.Endpoint](h.t)(h.b.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber}))
	h.ok(from.Bind(av, 0), from.Bind(sent, fi.BindTransmit), from.Enable())
	var eps [2]*fi.Endpoint
	var dest [2]fi.Address
	for i := range eps {
		eps[i] = must[*fi.Endpoint](h.t)(h.g.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber}))
		h.ok(eps[i].Bind(x, 0), eps[i].Enable())
		dest[i] = must[fi.Address](h.t)(av.Insert(h.t.Context(), h.g.Name(eps[i].Number())))
	}
	next := func(cq *fi.CompletionQueue) (fi.Completion, error) {
		var c [1]fi.Completion
		err := cq.Wait(h.t.Context(), 1)
		if err == nil {
			_, err = cq.Read(c[:])
		}
		return c[0], err
	}
	h.loop("message to a shared context", func(i uint64) error {
		buf := make([]byte, 8)
		err := x.Receive(&fi.Receive{Buf: buf}, 0)
		if err == nil {
			err = from.Send(&fi.Message{Buf: binary.LittleEndian.AppendUint64(nil, i), Dest: dest[i%2]}, 0)
		}
		if err != nil {
			return err
		}
		c, err := next(got)
		_, err2 := next(sent)
		if err := errors.Join(err, err2); err != nil || c.Endpoint != eps[i%2] || binary.LittleEndian.Uint64(buf) != i {
			return fmt.Errorf("message %x of %+v: %w", buf, c, err)
		}
		return nil
	})
}

// mails is a mailbox of the program's.
func (h *household) mails() {
	h.t.Helper()
	box := must[*xdpfab.Mailbox](h.t)(h.g.NewMailbox(xdpfab.MailboxAttr{Number: 5}))
	p := must[*xdpfab.Peer](h.t)(h.b.Dial(h.t.Context(), box.Name()))
	h.loop("mail", func(i uint64) error {
		sent := make(chan error, 1)
		go func() { sent <- p.Send(h.t.Context(), binary.LittleEndian.AppendUint64(nil, i)) }()
		m, err := box.Receive(h.t.Context(), make([]byte, 8))
		if err := errors.Join(err, <-sent); err != nil || binary.LittleEndian.Uint64(m.Bytes) != i {
			return fmt.Errorf("mail %x: %w", m.Bytes, err)
		}
		return nil
	})
}

// connects has each side ask the other one for a connection.
func (h *household) connects() {
	h.t.Helper()
	for _, way := range [][2]*caller{{h.here, h.there}, {h.there, h.here}} {
		ep, cq := way[0].calls(way[1])
		other, otherQueue := way[1].accepts(way[1].next(fi.EventConnReq).Request)
		way[0].next(fi.EventConnected)
		way[1].next(fi.EventConnected)
		if way[0] == h.there {
			ep, cq, other, otherQueue = other, otherQueue, ep, cq
		}
		h.connected(ep, cq, h.theirs, h.used)
		h.used++
		h.connected(other, otherQueue, h.counted, 256+h.used) // words of other ways are before
	}
}

// resident has the owner of the interface serve a resident region, too.
func (s *succession) resident() {
	o := mr.Options{Name: "hot", Access: mr.RemoteRead | mr.RemoteWrite}
	var m *mr.Memory
	s.t.Cleanup(func() { _ = m.Close() })
	s.more = func(d *xdpfab.Domain) (err error) {
		if m != nil { // of the former domain, which is closed
			err = m.Close()
		}
		if err != nil {
			return err
		}
		if m, err = d.NewResidentMemory("hot", 4096); err != nil {
			return err
		}
		r, err := d.Register(m, o)
		if err == nil {
			key := r.Key()
			o.Key, o.Incarnation = &key, r.Incarnation()
		}
		return err
	}
}

// A program that has an object of each kind moves with all of them at once, beside a
// resident region and a program on a queue of its own where the kernel can have them, and
// each works on, and makes others.
func TestTakeoverOfEverything(t *testing.T) {
	t.Run("pipe", func(t *testing.T) {
		s, b := newSuccession(t)
		takeoverOfEverything(t, newHousehold(t, s, b))
	})
	t.Run("veth", func(t *testing.T) {
		testnet.Require(t)
		attr := fi.DomainAttr{Attach: fi.AttachNever}
		lends := lendOne(t, &attr)
		pair := testnet.NewPair(t, testnet.Options{Queues: 1 + attr.Lend})
		host, b := openWhole(t, pair.A, attr), openWhole(t, pair.B, fi.DomainAttr{Attach: fi.AttachNever})
		s := &succession{t: t, side: pair.A, attr: attr}
		resides := !testnet.KernelBefore(t, 5, 18)
		if resides {
			s.resident()
		}
		s.begin(host)
		h := newHousehold(t, s, b)
		if lends {
			h.lending = &lending{t: t, pair: pair}
		}
		if resides {
			h.load.adds(must[*xdpfab.Peer](t)(b.Dial(t.Context(), host.Name(0))), "hot")
		}
		takeoverOfEverything(t, h)
	})
}

// A domain whose number of queues is left to the default takes over one that had more.
func TestTakeoverOfManyQueues(t *testing.T) {
	testnet.Require(t)
	const queues = port.DefaultQueues + 1
	if testnet.Granted(t).Queues < queues {
		t.Skipf("the NICs have fewer than %d queues", queues)
	}
	pair := testnet.NewPair(t, testnet.Options{Queues: queues})
	attr := fi.DomainAttr{Attach: fi.AttachNever}
	s := &succession{t: t, side: pair.A, attr: attr}
	attr.Queues = queues
	s.begin(openWhole(t, pair.A, attr))
	s.next()
	if n := s.dom.Node().Dev.Info().Queues; n != queues {
		t.Errorf("%d queues, want %d", n, queues)
	}
}

func takeoverOfEverything(t *testing.T, h *household) {
	h.observed()
	first := h.runs[len(h.runs)-1]
	h.scalable()
	done := h.transmits()
	sharing := h.runs[len(h.runs)-2:]
	h.receives()
	h.mails()
	h.here, h.there = newCaller(t, h.g), newCaller(t, h.b)
	h.connects()
	h.borrows()
	for range 2 {
		h.goOn()
		h.succession.next()
		h.lent()
	}
	h.goOn()
	h.connects() // by the same event queues and passive endpoints
	h.goOn()
	h.stop.Store(true)
	for _, r := range h.runs {
		<-r.done
	}
	sum := uint64(0)
	for at := 0; at < 4096; at += 8 {
		sum += binary.LittleEndian.Uint64(h.counted.Bytes()[at:])
	}
	if n := first.n.Load(); h.tally[0].Read() != n || h.tally[1].Read() != sum {
		t.Errorf("counted %d by the endpoint and %d to the region, want %d and %d",
			h.tally[0].Read(), h.tally[1].Read(), n, sum)
	}
	if n := sharing[0].n.Load() + sharing[1].n.Load(); done.Read() != n || done.ReadErr() != 0 {
		t.Errorf("counted %d and %d failures, want %d", done.Read(), done.ReadErr(), n)
	}
	if name, err := h.sep.AV().Lookup(h.dest); err != nil || name != h.b.Name(6) {
		t.Errorf("the address vector has %s, %v", name, err)
	}
	if list := h.dom.Hosting().Kept(); len(list) != 1 || list[0].Name != "kept" || !list[0].InUse {
		t.Errorf("kept: %+v", list)
	}
	want := 1 + h.borrowers()
	if guests := h.dom.Hosting().Guests(); len(guests) != want {
		t.Errorf("guests: %+v, want %d", guests, want)
	}
}
