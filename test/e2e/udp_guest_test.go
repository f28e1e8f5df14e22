// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	fab "github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// outpost is a daemon on UDP sockets with the rights of a container, and a node with
// AF_XDP, of the test's process, at the other end.
type outpost struct {
	t      *testing.T
	net    *testnet.Pair
	self   *os.File // the test binary
	socket string
	d      *node
	dom    *fab.Domain // the other node
}

func newOutpost(t *testing.T) *outpost {
	t.Helper()
	testnet.Require(t)
	o := &outpost{t: t, net: testnet.NewPair(t, testnet.Options{})}
	o.socket = filepath.Join(nobodysDir(t), socketName)
	var err error
	if o.self, err = os.Open("/proc/self/exe"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.self.Close() })
	o.begin()
	o.open()
	return o
}

// begin starts the daemon.
func (o *outpost) begin() {
	o.t.Helper()
	o.d = &node{o.confined(o.net.B, []string{xdpfabdPath, "--interface", o.net.B.IfName, "--control", o.socket,
		"--transport", "udp", "--give-up", silence.String(), "--guest", "allow:user=65534,kept=4MiB", "--region", "r=4KiB"},
		"NOTIFY_SOCKET="), o.net.B, o.socket}
	o.d.ready()
}

// confined starts a program as nobody, with the rights of a container.
func (o *outpost) confined(side *testnet.Side, args []string, pairs ...string) *process {
	o.t.Helper()
	return start(o.t, side, testnet.ThroughSelf, args, env(pairs...), testnet.ConfinedBy(o.self), unprivileged)
}

// guest starts the test binary in another guise as a guest of the daemon. It is in no
// network namespace of the pair.
func (o *outpost) guest(as string, args ...string) *process {
	o.t.Helper()
	args = slices.Concat([]string{testnet.ThroughSelf, "-i", o.net.B.IfName, "-peer", o.net.A.IP4.String()}, args)
	return o.confined(nil, args, as+"=1", fi.ControlEnv+"="+o.socket)
}

// visitor starts one, and waits until it says that all is well.
func (o *outpost) visitor(args ...string) *process {
	o.t.Helper()
	v := o.guest(asVisitor, args...)
	v.eventually("all is well", func() bool { return v.out.String() == visitorSays })
	return v
}

// open opens the other node, with what visitors want of it.
func (o *outpost) open() {
	o.t.Helper()
	t, ctx := o.t, o.t.Context()
	err := o.net.A.Do(func() (err error) {
		o.dom, err = fab.Open(ctx, o.net.A.IfName, fab.DomainAttr{Attach: fi.AttachNever, GiveUp: limit})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.dom.CloseAll(); err != nil {
			t.Error(err)
		}
	})
	_, err1 := o.dom.NewRegion(peerRegion, peerSize)
	ep, err2 := o.dom.NewEndpoint(fi.EndpointAttr{})
	box, err3 := o.dom.NewMailbox(fab.MailboxAttr{Number: peerMailbox})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	go o.echo(ctx, box)
	q, err1 := o.dom.Fabric().NewEventQueue(fi.EQAttr{})
	cq, err2 := o.dom.NewCompletionQueue(fi.CQAttr{})
	passive, err3 := o.dom.NewPassiveEndpoint(fi.PassiveAttr{Number: peerListens})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(passive.Bind(q), passive.Listen()); err != nil {
		t.Fatal(err)
	}
	go o.accept(ctx, q, cq)
}

// echo sends every message back.
func (o *outpost) echo(ctx context.Context, box *fab.Mailbox) {
	for m, err := range box.All(ctx, make([]byte, 100)) {
		if err != nil {
			return // the test is over
		}
		p, err := box.Dial(ctx, m.From.String())
		if err == nil {
			err = errors.Join(p.Send(ctx, m.Bytes), p.Close())
		}
		if err != nil && ctx.Err() == nil {
			o.t.Errorf("answering %s: %v", m.From, err)
		}
	}
}

// accept accepts every request for a connection.
func (o *outpost) accept(ctx context.Context, q *fi.EventQueue, cq *fi.CompletionQueue) {
	for q.Wait(ctx) == nil {
		e, ok, err := q.Read()
		if !ok || err != nil || e.Kind != fi.EventConnReq {
			continue
		}
		i := e.Request.Info()
		ep, err := o.dom.NewEndpoint(i.EndpointAttr())
		if err == nil {
			err = errors.Join(ep.Bind(cq, 0), ep.Bind(q, 0))
		}
		if err == nil {
			err = ep.Accept(ctx, []byte("welcome"))
		}
		if err != nil && ctx.Err() == nil {
			o.t.Errorf("accepting: %v", err)
		}
	}
}

// own is the first word of the region that a visitor serves.
func (o *outpost) own(a string) (fab.Remote[uint64], *fab.Peer) {
	o.t.Helper()
	ctx := o.t.Context()
	p, err := o.dom.Dial(ctx, fmt.Sprintf("%s/%d", a, visitorServes))
	if err != nil {
		o.t.Fatal(err)
	}
	w, err := fab.Word[uint64](ctx, p, "own", 0)
	if err != nil {
		o.t.Fatal(err)
	}
	return w, p
}

// Programs use an interface through a daemon on UDP sockets; neither has any right of its
// own. They do all that they would do elsewhere, with a peer on AF_XDP; a region outlives
// the program that was killed, and the next one has it back.
func TestSocketsGuest(t *testing.T) {
	o := newOutpost(t)
	ctx := t.Context()
	first := o.visitor()
	w, p := o.own(o.net.B.IP4.String())
	region, err := p.Lookup(ctx, "own")
	if err != nil {
		t.Fatal(err)
	}
	data, back := bytes.Repeat([]byte("0123456789abcde"), 60_000), make([]byte, 900_000)
	if err := errors.Join(p.Write(ctx, region, 64, data), p.Read(ctx, region, 64, back)); err != nil || !bytes.Equal(data, back) {
		t.Errorf("the visitor's memory: %v, equal: %t", err, bytes.Equal(data, back))
	}
	signal := fab.Signal{Region: region, Index: 1, Op: atomic.Sum, Value: 5}
	if err := p.WriteSignal(ctx, region, 64, data[1:], signal); err != nil {
		t.Fatal(err)
	}
	n, err := fab.WordAt[uint64](p, region, 1).Load(ctx)
	if err := errors.Join(err, p.Read(ctx, region, 64, back)); err != nil || n != 5 || !bytes.Equal(data[1:], back[:len(data)-1]) {
		t.Errorf("a write with a signal: %v, the word is %d, equal: %t", err, n, bytes.Equal(data[1:], back[:len(data)-1]))
	}
	add := func(n uint64) {
		t.Helper()
		if sum, err := w.Add(ctx, 1); sum != n || err != nil {
			t.Fatalf("%d, %v, want %d", sum, err, n)
		}
	}
	add(1)
	first.signal(unix.SIGKILL)
	<-first.done
	o.d.eventually("no guest", func() bool { s, err := o.d.ask(); return err == nil && len(s.Guests) == 0 })
	add(2) // the region is kept
	if _, err := o.dom.Dial(ctx, fmt.Sprintf("%v/%d", o.net.B.IP4, visitorMailbox)); err == nil {
		t.Error("the mailbox outlives its program")
	}
	second := o.visitor("-back")
	add(3)
	w6, _ := o.own(o.net.B.IP6.String())
	if n, err := w6.Load(ctx); n != 3 || err != nil {
		t.Errorf("over IPv6: %d, %v, want 3", n, err)
	}
	second.signal(unix.SIGKILL)
	<-second.done
	o.d.end()
}

// A guest of a daemon on UDP sockets that is killed goes on with the next one.
func TestSocketsHostRestarted(t *testing.T) {
	o := newOutpost(t)
	executed := func() uint64 {
		s, err := o.dom.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return s["ops_executed"]
	}
	adder := o.guest(asAdder, "-region", peerRegion, "-later", "100")
	adder.eventually("adding", func() bool { return executed() > 20_000 })
	o.d.kill()
	o.begin()
	a := fates(adder)
	p, err := o.dom.Dial(t.Context(), o.net.A.IP4.String()) // itself
	if err != nil {
		t.Fatal(err)
	}
	w, err := fab.Word[uint64](t.Context(), p, peerRegion, 0)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := w.Load(t.Context())
	if err != nil || sum < a.Added || sum > a.Added+a.Unknown || a.Later < 100 ||
		!strings.Contains(a.First, "daemon that has the interface has ended") {
		t.Errorf("the memory holds %d, %v; account %+v", sum, err, a)
	}
	o.d.end()
}

// A daemon on UDP sockets takes the place of one on AF_XDP that was killed, unless that
// one's XDP program stays and takes the packets: then it is refused, until the program is
// removed. A daemon that may not know whose program that is says so.
func TestSocketsAfterXDP(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	dir := t.TempDir()
	udp := func(options ...option) *node {
		t.Helper()
		socket := filepath.Join(dir, socketName)
		args := []string{"--interface", net.B.IfName, "--control", socket, "--transport", "udp", "--region", "r=4KiB"}
		return &node{start(t, net.B, xdpfabdPath, args, append([]option{env("NOTIFY_SOCKET=")}, options...)...), net.B, socket}
	}
	add := func() {
		t.Helper()
		xdpfab(t, net.A, []string{"atomic", "sum", "uint64", "1", "-q", "-i", net.A.IfName, "--peer", net.B.IP4.String(),
			"--region", "r", "--transport", "udp"}).wants(0)
	}
	d := serve(t, net.B, "--pin", "none")
	d.crash() // the program may be there for a moment
	n := udp()
	n.ready()
	add()
	n.end()

	d, folder, flags := pinned(t, net.B)
	d.end()
	d = again(t, net.B, d.socket, flags...)
	d.crash()
	n = udp()
	n.wants(5, "takes the packets", "xdpfab resident list", "bpftool -f link show id")
	own := dir
	dir = nobodysDir(t)
	n = udp(unprivileged)
	n.ready()
	n.eventually("the warning", func() bool { return strings.Contains(n.err.String(), "may hear no peer") })
	n.signal(unix.SIGTERM)
	n.wants(0)
	xdpfab(t, net.B, []string{"resident", "remove", folder}).wants(0)
	dir = own
	n = udp()
	n.ready()
	add()
	n.end()
}
