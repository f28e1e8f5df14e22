// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// neighbours are an honest program under load, and another one that a takeover may have
// trouble with, with a region "trap" that peers add to.
type neighbours struct {
	*succession
	peer *xdpfab.Domain // that adds
	l    *load
	bad  *xdpfab.Domain
	trap *mr.Region
	told atomic.Int32 // how often the owner, or its log, was told of a guest that is turned out
}

// Enabled and its like make it the log of the domains: a slog.Handler.
func (n *neighbours) Enabled(context.Context, slog.Level) bool { return true }
func (n *neighbours) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "is evicted") {
		n.told.Add(1)
	}
	return nil
}
func (n *neighbours) WithAttrs([]slog.Attr) slog.Handler { return n }
func (n *neighbours) WithGroup(string) slog.Handler      { return n }

func newNeighbours(t *testing.T) *neighbours {
	t.Helper()
	s, b := newSuccession(t)
	s.limits = host.GuestLimits{Kept: 1 << 20, Rule: "rule 7"}
	n := &neighbours{succession: s, peer: b, l: &load{t: t}}
	s.gone, s.attr.Log = func(error) { n.told.Add(1) }, slog.New(n)
	good := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	if _, err := good.NewRegion("own", 4096); err != nil {
		t.Fatal(err)
	}
	serveAt(t, good, 7)
	dial := func(d *xdpfab.Domain, name string) *xdpfab.Peer {
		p, err := d.Dial(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	n.l.adds(dial(good, b.Name(0)), "words")
	n.l.adds(dial(b, good.Name(7)), "own")
	n.bad = guestBy(t, s.connect, fi.DomainAttr{}, nil)
	var err error
	if n.trap, err = n.bad.NewRegion("trap", 4096); err != nil {
		t.Fatal(err)
	}
	serveAt(t, n.bad, 9)
	return n
}

// ends has the honest program's load end: nothing of it may have failed.
func (n *neighbours) ends() {
	n.l.stop.Store(true)
	for _, r := range n.l.runs {
		<-r.done
	}
}

// hears waits until the bad program's host has gone, and checks what it says of that.
func (n *neighbours) hears(want string) {
	n.t.Helper()
	a := n.bad.Node().Dev.(*guestpkg.Attached)
	var ended error
	testnet.Eventually(n.t, "the end of the program's host", func() bool {
		a.Mu.Lock()
		defer a.Mu.Unlock()
		ended = a.Ended
		return ended != nil
	})
	if !errors.Is(ended, fi.ErrHostLost) || !strings.Contains(ended.Error(), want) {
		n.t.Errorf("it was told %v, want %s", ended, want)
	}
}

// twice has a domain open the handover and give it back, and then another one go on.
func (n *neighbours) twice(h *host.Handover) {
	n.t.Helper()
	if err := n.open(h).CloseAll(); err != nil {
		n.t.Error(err)
	}
	n.dom = n.open(h)
	n.dom.Resume()
	if err := h.Close(); err != nil {
		n.t.Error(err)
	}
	n.l.goOn()
}

func (n *neighbours) handOver() *host.Handover {
	n.t.Helper()
	h, err := n.dom.Hosting().HandOver(time.Minute)
	if err != nil {
		n.t.Fatal(err)
	}
	n.taken.Wait()
	return h
}

// bads returns what a handover has of the bad program.
func bads(h *host.Handover) *host.AttachedState {
	for _, g := range h.State.Guests {
		for _, ep := range g.Attached.Endpoints {
			if ep.Serve.Endpoint == 9 {
				return g.Attached
			}
		}
	}
	return nil
}

// A guest that cannot be restored is turned out and told why, and what it has kept stays;
// the other one notices nothing, be the handover opened once or again.
func TestTakeoverTurnsOut(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(n *neighbours, h *host.Handover)
		want  string
	}{
		"its segment is gone":    {func(_ *neighbours, h *host.Handover) { bads(h).Segment = -1 }, "the rings are missing"},
		"its bell is gone":       {func(_ *neighbours, h *host.Handover) { bads(h).Doorbell = -1 }, "is missing"},
		"a feature is unknown":   {func(_ *neighbours, h *host.Handover) { bads(h).Features = []string{"errno", "flying"} }, "uses the features [errno flying]"},
		"a region is gone":       {func(_ *neighbours, h *host.Handover) { bads(h).Regions[0].Memory = -1 }, "the memory of a region is missing"},
		"rings of other sizes":   {func(_ *neighbours, h *host.Handover) { bads(h).Sizes.Entries = 1 << 20 }, "rings of 1048576 entries"},
		"an origin that is not":  {func(_ *neighbours, h *host.Handover) { bads(h).Endpoints[0].As.Origin = 0 }, "an endpoint without an origin"},
		"a number that is taken": {func(_ *neighbours, h *host.Handover) { again(bads(h)) }, "endpoint number 9 is taken"},
		"more than the rule's": {func(n *neighbours, h *host.Handover) {
			n.strict(h, host.GuestLimits{Entries: 2048, Rule: "rule 8"}, nil)
		}, "rule 8 allows 2048"},
		"a weight that cannot be":  {func(n *neighbours, h *host.Handover) { n.strict(h, host.GuestLimits{Weight: 101}, nil) }, "a guest of weight 101: want 1 to 100"},
		"no place":                 {func(n *neighbours, h *host.Handover) { n.strict(h, host.GuestLimits{}, errors.New("no place left")) }, "no place left"},
		"no block of its contexts": {func(n *neighbours, h *host.Handover) { orphan(bads(h)) }, ""},
	} {
		t.Run(what, func(t *testing.T) {
			n := newNeighbours(t)
			defer n.ends()
			if err := n.bad.Keep(n.trap); err != nil {
				t.Fatal(err)
			}
			h := n.handOver()
			c.spoil(n, h)
			n.twice(h)
			n.rule = nil
			if c.want == "" {
				n.l.goOn()
				return
			}
			n.hears(c.want)
			if told := n.told.Load(); told != 1 {
				t.Errorf("the owner was told %d times, want once", told)
			}
			untilGone := func() bool { return len(n.dom.Hosting().Guests()) == 1 }
			testnet.Eventually(t, "one guest", untilGone)
			lost := what == "a region is gone"
			if list := n.dom.Hosting().Kept(); lost != (len(list) == 0) || !lost && (list[0].InUse || list[0].Rule != "rule 7" || !slices.Equal(list[0].Endpoints, []uint16{9}) && list[0].Endpoints[0] != 7) {
				t.Errorf("kept: %+v", list)
			}
			n.next() // and nothing of it stands in the way of the next one
			n.l.goOn()
		})
	}
}

// strict has another rule for the bad program at the next host.
func (n *neighbours) strict(h *host.Handover, l host.GuestLimits, err error) {
	n.rule = func(i int) (host.GuestLimits, error) {
		if i < len(h.State.Guests) && h.State.Guests[i].Attached == bads(h) {
			return l, err
		}
		return n.limits, nil
	}
}

// again adds another endpoint of the same number.
func again(a *host.AttachedState) {
	ep := a.Endpoints[0]
	ep.As.Number, ep.As.Origin, ep.Serve.Endpoint = 9, node.NewLife(), 9
	a.Endpoints = append(a.Endpoints, ep)
}

// orphan adds an endpoint whose scalable endpoint is gone.
func orphan(a *host.AttachedState) {
	of := uint16(40)
	ep := a.Endpoints[0]
	ep.As.Number, ep.As.Block, ep.As.Origin, ep.Serve.Endpoint = 40, &of, node.NewLife(), 40
	a.Endpoints = append(a.Endpoints, ep)
	a.Ring.Peers = append(a.Ring.Peers, share.PeerState{Number: 999, As: share.Peer{Origin: ep.As.Origin}})
}

// What a program can do to its memory when its host has it changes nothing at the next
// host: seals against writing, and other sizes, of rings, regions and regions that are
// kept.
func TestTakeoverOfTraps(t *testing.T) {
	n := newNeighbours(t)
	defer n.ends()
	if err := n.bad.Keep(n.trap); err != nil {
		t.Fatal(err)
	}
	c, err := n.bad.NewCounter()
	if err == nil {
		err = observeTrap(n.bad, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	host := n.host(9)
	host.Mu.Lock()
	tallies := host.Tallies.FD()
	host.Mu.Unlock()
	files := map[string]int{"segment": host.Segment.FD(), "region": n.trap.Memory().FD(), "tallies": tallies}
	for what, fd := range files {
		_, sealed := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE)
		for how, err := range map[string]error{"sealed": sealed, "grown": unix.Ftruncate(fd, 1<<40), "cut": unix.Ftruncate(fd, 0)} {
			if !errors.Is(err, unix.EPERM) {
				t.Errorf("%s: %s: %v, want EPERM", what, how, err)
			}
		}
	}
	n.next()
	n.l.goOn()
	if len(n.dom.Hosting().Guests()) != 2 {
		t.Errorf("guests: %+v", n.dom.Hosting().Guests())
	}
	n.bad.Node().Dev.(*guestpkg.Attached).EndTalk() // the region stays, without a program
	testnet.Eventually(t, "left", func() bool { list := n.dom.Hosting().Kept(); return len(list) == 1 && !list[0].InUse })
	n.next()
	if list := n.dom.Hosting().Kept(); len(list) != 1 {
		t.Errorf("kept: %+v", list)
	}
}

// observeTrap binds a counter to an endpoint, so that the host maps tallies.
func observeTrap(d *xdpfab.Domain, c *fi.Counter) error {
	ep, err := d.NewEndpoint(fi.EndpointAttr{Number: 10})
	if err != nil {
		return err
	}
	return errors.Join(ep.Bind(c, fi.BindRemoteWrite), ep.Enable())
}

// host returns the present host's view of the guest that has an endpoint.
func (n *neighbours) host(endpoint uint16) *host.Guest {
	lock := n.dom.Lock()
	lock.Lock()
	defer lock.Unlock()
	return n.dom.Node().Numbers.At(endpoint).(*host.GuestEndpoint).Guest
}

// A program that breaks a rule while another one, which does not read its answers, has
// the handover wait, is turned out; so is the other one.
func TestTakeoverOfBreakers(t *testing.T) {
	n := newNeighbours(t)
	defer n.ends()
	own, other := pairOf(t)
	n.hosted.Go(func() { _ = n.dom.Hosting().Serve(other, n.limits) })
	deaf := share.NewTalk(own)
	defer deaf.Close()
	segment, err := share.NewSegment(share.Sizes{Entries: 16, Arena: share.MinArena, Arrivals: share.MinArrivals})
	if err != nil {
		t.Fatal(err)
	}
	defer segment.Close()
	_, fds, err := guestpkg.Ask(t.Context(), deaf, share.CallAttach, share.Attach{Version: share.Version, Sizes: share.Sizes{Entries: 16, Arena: share.MinArena, Arrivals: share.MinArrivals}}, segment.FD())
	if err != nil {
		t.Fatal(err)
	}
	share.CloseAll(fds)
	_ = own.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	for err == nil { // until its host has no room for answers, and takes no calls
		err = deaf.Send(share.Call{ID: 1, Verb: strings.Repeat("x", 1000), Arguments: json.RawMessage("0")})
	}
	bad := n.host(9)
	broken := make(chan struct{})
	go func() {
		defer close(broken)
		<-bad.Paused
		mem, err := unix.Mmap(bad.Segment.FD(), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Error(err)
			return
		}
		binary.LittleEndian.PutUint64(mem[64:], 1<<40) // posted
		bad.St.Eng.Alert()
		_ = unix.Munmap(mem)
	}()
	h, err := n.dom.Hosting().HandOver(time.Second)
	<-broken
	if err != nil {
		t.Fatal(err)
	}
	n.twice(h)
	n.hears("")
	testnet.Eventually(t, "the honest program is left", func() bool { return len(n.dom.Hosting().Guests()) == 1 })
	n.l.goOn()
}

// A process that has not as many file descriptors as a handover needs refuses it before
// anything has stopped.
func TestTakeoverWithoutFiles(t *testing.T) {
	n := newNeighbours(t)
	defer n.ends()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []uint64{8, host.OtherFiles} { // with and without room for a few
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(all)) + more, Max: limit.Max}); err != nil {
			t.Fatal(err)
		}
		can := n.dom.Hosting().CanHandOver()
		h, err := n.dom.Hosting().HandOver(time.Minute)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if h != nil || !errors.Is(err, unix.EMFILE) || !errors.Is(can, unix.EMFILE) || !strings.Contains(err.Error(), "LimitNOFILE") {
			t.Fatalf("%v and %v; want EMFILE, and what to do", can, err)
		}
		n.l.goOn()
	}
	n.next()
	n.l.goOn()
}

// A program that says of an endpoint with a session that it takes messages no longer
// loses the session at the next host, and nothing else is lost.
func TestTakeoverOfATurncoat(t *testing.T) {
	n := newNeighbours(t)
	defer n.ends()
	box, err := n.bad.NewMailbox(xdpfab.MailboxAttr{Number: 11})
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.peer.Dial(t.Context(), n.bad.Name(11))
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan error, 1)
	go func() {
		_, err := box.Receive(t.Context(), make([]byte, 8))
		received <- err
	}()
	if err := errors.Join(p.Send(t.Context(), []byte("hello")), <-received); err != nil {
		t.Fatal(err)
	}
	if err := n.bad.Node().Dev.(*guestpkg.Attached).Call(t.Context(), share.CallServe, share.Serve{Endpoint: 11, On: true}, nil); err != nil {
		t.Fatal(err)
	}
	n.twice(n.handOver())
	n.next()
	n.l.goOn()
	if len(n.dom.Hosting().Guests()) != 2 {
		t.Errorf("guests: %+v", n.dom.Hosting().Guests())
	}
}
