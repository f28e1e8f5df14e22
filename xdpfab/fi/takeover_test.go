// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// succession is a domain of a pipe that one after another takes over.
type succession struct {
	t      *testing.T
	dev    *node.PipeEnd
	side   *testnet.Side // of the interface, in place of dev
	attr   fi.DomainAttr
	dom    *xdpfab.Domain
	memory *mr.Memory
	region *mr.Region
	hosted sync.WaitGroup                            // that Host serves
	taken  sync.WaitGroup                            // guests of the present domain that were handed over
	limits host.GuestLimits                          // of each guest
	more   func(*xdpfab.Domain) error                // the owner makes, too; nil for nothing
	rule   func(guest int) (host.GuestLimits, error) // of one that is handed over, by its place, if not nil
	gone   func(error)                               // is told why a guest has gone that was taken over; nil if that must not be
}

// connect is a way to the present domain.
func (s *succession) connect(context.Context) (*share.Talk, error) {
	own, other := pairOf(s.t)
	s.hosted.Go(func() {
		if err := s.dom.Hosting().Serve(other, s.limits); err != nil && s.gone == nil {
			s.t.Errorf("host: %v", err)
		}
	})
	return share.NewTalk(own), nil
}

// pairOf returns two ends of a connection.
func pairOf(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	end := func(fd int) *net.UnixConn {
		f := os.NewFile(uintptr(fd), "pair")
		defer f.Close()
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		return c.(*net.UnixConn)
	}
	return end(fds[0]), end(fds[1])
}

// prepare is what the owner of the domain has itself.
func (s *succession) prepare(d *xdpfab.Domain) error {
	o := mr.Options{Name: "words", Access: mr.RemoteRead | mr.RemoteWrite}
	if r := s.region; r != nil {
		key := r.Key()
		o.Key, o.Incarnation = &key, r.Incarnation()
	}
	r, err := d.Register(s.memory, o)
	if err != nil {
		return err
	}
	s.region = r
	if s.more != nil {
		if err := s.more(d); err != nil {
			return err
		}
	}
	ep, err := d.NewEndpoint(fi.EndpointAttr{})
	if err != nil {
		return err
	}
	return ep.Enable()
}

// next has another domain take over, to which all that it gets is sent.
func (s *succession) next() {
	s.t.Helper()
	h, err := s.dom.Hosting().HandOver(time.Minute)
	if err != nil {
		s.t.Fatal(err)
	}
	s.taken.Wait()
	from, to := pairOf(s.t)
	sent := make(chan error, 1)
	go func() { sent <- errors.Join(h.Send(from), from.Close()) }()
	again, err := host.ReceiveHandover(to)
	if err := errors.Join(err, <-sent, to.Close(), h.Close()); err != nil {
		s.t.Fatal(err)
	}
	s.dom = s.open(again)
	s.dom.Resume()
	if err := again.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// open opens a handover, on the device of the former domain.
func (s *succession) open(h *host.Handover) *xdpfab.Domain {
	s.t.Helper()
	d, err := s.tryOpen(h)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *succession) tryOpen(h *host.Handover) (d *xdpfab.Domain, err error) {
	h.Charge(func(string) []*host.Budget { return s.limits.Budgets })
	place := -1
	admit := func(*net.UnixConn) (host.GuestLimits, func(error), error) {
		limits := s.limits
		if place++; s.rule != nil {
			if limits, err = s.rule(place); err != nil {
				return limits, nil, err
			}
		}
		s.taken.Add(1)
		return limits, func(err error) {
			if s.taken.Done(); err != nil && s.gone != nil {
				s.gone(err)
			} else if err != nil {
				s.t.Errorf("guest that was taken over: %v", err)
			}
		}, nil
	}
	if s.side != nil {
		return d, s.side.Do(func() error {
			d, err = on(fi.TakeOver(s.t.Context(), h, s.side.IfName, s.attr, admit, ofFi(s.prepare)))
			return err
		})
	}
	f, err := fi.NewFabric(s.attr)
	if err != nil {
		return nil, err
	}
	if d, err = on(f.Next(s.dev, h.State.Life)); err != nil {
		return nil, err
	}
	return on(d.Inherit(h, admit, ofFi(s.prepare)))
}

// newSuccession returns the first domain, and one at the other end with a region.
func newSuccession(t *testing.T) (*succession, *xdpfab.Domain) {
	fi.NotOverSockets(t, "such a domain is not handed over")
	a, b, _ := pipeWithRegion(t, 4096)
	s := succeed(t, a)
	s.dev = a.Node().Dev.(*node.PipeEnd)
	return s, b
}

// succeed begins with a domain.
func succeed(t *testing.T, a *xdpfab.Domain) *succession {
	s := &succession{t: t}
	s.begin(a)
	return s
}

func (s *succession) begin(a *xdpfab.Domain) {
	t := s.t
	m, err := mr.Memfd("words", 4096)
	if err != nil {
		t.Fatal(err)
	}
	s.dom, s.memory = a, m
	if err := s.prepare(a); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.dom.CloseAll(), m.Close()); err != nil {
			t.Error(err)
		}
		s.hosted.Wait()
		s.taken.Wait()
	})
}

// load is operations that run one after the other until they are told to stop.
type load struct {
	t    *testing.T
	stop atomic.Bool
	runs []*run
}

// run is one loop of a load.
type run struct {
	n    atomic.Uint64 // of operations that have succeeded
	done chan struct{}
}

// loop makes operations, each with the number of those before it.
func (l *load) loop(what string, once func(i uint64) error) *run {
	r := &run{done: make(chan struct{})}
	l.runs = append(l.runs, r)
	go func() {
		defer close(r.done)
		for !l.stop.Load() {
			if err := once(r.n.Load()); err != nil {
				l.t.Errorf("%s %d: %v", what, r.n.Load(), err)
				return
			}
			r.n.Add(1)
		}
	}()
	return r
}

// adds adds 1 to the first word of a region, again and again. Nobody else changes it.
func (l *load) adds(p *xdpfab.Peer, region string) {
	l.t.Helper()
	word, err := xdpfab.Word[uint64](l.t.Context(), p, region, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	l.loop("add to "+region, func(i uint64) error {
		if sum, err := word.Add(l.t.Context(), 1); err != nil || sum != i+1 {
			return fmt.Errorf("sum %d, want %d: %w", sum, i+1, err)
		}
		return nil
	})
}

// goOn waits until each loop has made progress.
func (l *load) goOn() {
	l.t.Helper()
	for _, r := range l.runs {
		was := r.n.Load()
		testnet.Eventually(l.t, "progress", func() bool { return r.n.Load() > was || l.t.Failed() })
	}
}

// Domains take over from one another under load: the sums are exact, no operation fails,
// peers and guests see no restart, messages come once and in order, and a watch goes on.
func TestTakeover(t *testing.T) {
	s, b := newSuccession(t)
	ctx := t.Context()
	g := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	if _, err := g.NewRegion("own", 4096); err != nil {
		t.Fatal(err)
	}
	ep, err := g.NewEndpoint(fi.EndpointAttr{Number: 7})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	box, err := g.NewMailbox(xdpfab.MailboxAttr{Number: 5})
	if err != nil {
		t.Fatal(err)
	}
	dial := func(d *xdpfab.Domain, name string) *xdpfab.Peer {
		p, err := d.Dial(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	l := &load{t: t}
	toB := dial(g, b.Name(0))
	l.adds(toB, "words")
	l.adds(dial(b, g.Name(7)), "own")
	l.adds(dial(b, g.Name(0)), "words")
	mail := dial(b, g.Name(5))
	sent := l.loop("message", func(i uint64) error { return mail.Send(ctx, binary.LittleEndian.AppendUint64(nil, i)) })
	var got atomic.Uint64
	reading, halt := context.WithCancel(ctx)
	received, watched := make(chan error, 1), make(chan error, 1)
	go func() {
		for buf := make([]byte, 64); ; got.Add(1) {
			m, err := box.Receive(reading, buf)
			if err == nil && binary.LittleEndian.Uint64(m.Bytes) != got.Load() {
				err = fmt.Errorf("message %d came in place of %d", binary.LittleEndian.Uint64(m.Bytes), got.Load())
			}
			if err != nil {
				received <- err
				return
			}
		}
	}()
	go func() { watched <- toB.Watch(ctx) }()
	for range 5 {
		l.goOn()
		s.next()
	}
	l.goOn()
	l.stop.Store(true)
	for _, r := range l.runs {
		<-r.done
	}
	testnet.Eventually(t, "all messages", func() bool { return got.Load() == sent.n.Load() || len(received) > 0 })
	halt()
	if err := <-received; !errors.Is(err, context.Canceled) || got.Load() != sent.n.Load() {
		t.Errorf("%d messages of %d: %v", got.Load(), sent.n.Load(), err)
	}
	select {
	case err := <-watched:
		t.Errorf("the watch has ended: %v", err)
	default:
	}
	if err := b.CloseAll(); err != nil {
		t.Error(err)
	}
	if err := <-watched; !errors.Is(err, fi.ErrPeerClosed) {
		t.Errorf("watch: %v", err)
	}
}

// Regions that are kept go on at the next process, also those of programs that have
// ended: the next program takes them back there, with what peers have added meanwhile.
func TestTakeoverKept(t *testing.T) {
	s, b := newSuccession(t)
	s.limits = host.GuestLimits{Kept: 8192, Rule: "rule 7"}
	ctx := t.Context()
	former := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	for _, name := range []string{"mine", "second"} {
		r, err := former.NewRegion(name, 4096)
		if err == nil {
			err = former.Keep(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	serveAt(t, former, 7)
	p, err := b.Dial(ctx, former.Name(7))
	if err != nil {
		t.Fatal(err)
	}
	l := &load{t: t}
	l.adds(p, "mine")
	l.adds(p, "second")
	handOver := func() {
		l.goOn()
		s.next()
		l.goOn()
	}
	handOver() // with the program
	if err := former.CloseAll(); err != nil {
		t.Fatal(err)
	}
	untilLeft(t, s.dom)
	handOver() // without it
	if list := s.dom.Hosting().Kept(); len(list) != 2 || list[0].InUse || list[0].Rule != "rule 7" || !slices.Equal(list[0].Endpoints, []uint16{7}) {
		t.Errorf("%+v", list)
	}
	successor := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	back, err := successor.TakeBack("mine")
	if err != nil {
		t.Fatal(err)
	}
	handOver() // with a successor that has one of two, and no endpoint
	if list := s.dom.Hosting().Kept(); len(list) != 2 || !list[0].InUse || list[1].InUse {
		t.Errorf("%+v", list)
	}
	serveAt(t, successor, 7)
	handOver() // with its endpoint
	second, err := successor.TakeBack("second")
	if err != nil {
		t.Fatal(err)
	}
	l.stop.Store(true)
	for i, r := range l.runs {
		<-r.done
		got, err := []*mr.Region{back, second}[i].Uint64(0)
		if err != nil || got.Load() != r.n.Load() {
			t.Errorf("region %d: %v, %v; want %d", i, got, err, r.n.Load())
		}
	}
	for _, r := range []*mr.Region{back, second} {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if list := s.dom.Hosting().Kept(); len(list) != 0 {
		t.Errorf("still kept: %+v", list)
	}
}
