// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// estate is a node with resident regions that one domain after another takes over.
type estate struct {
	*homestead
	ordinary *mr.Memory
	memories []*mr.Memory          // resident ones of the present domain
	hot      *mr.Region            // of the present domain
	keys     map[string]mr.Options // of regions, by name: key and incarnation
}

func newEstate(t *testing.T, side *testnet.Side, attr fi.DomainAttr, pinned bool) *estate {
	t.Helper()
	e := vacantEstate(t, side, attr, pinned)
	d, err := e.tryOpen(e.attr)
	if err == nil {
		err = e.furnish(d)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.has(d)
	d.Resume()
	return e
}

// vacantEstate is a node without a domain.
func vacantEstate(t *testing.T, side *testnet.Side, attr fi.DomainAttr, pinned bool) *estate {
	t.Helper()
	h := newHomestead(t, side, attr)
	if !pinned {
		h.attr.ResidentPin = ""
	}
	m, err := mr.Memfd("ordinary", 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return &estate{homestead: h, ordinary: m, keys: map[string]mr.Options{}}
}

// has makes a domain the present one.
func (e *estate) has(d *xdpfab.Domain) {
	e.dom = d
	e.t.Cleanup(func() { d.CloseAll() })
}

// furnish makes regions, as they were, and endpoints.
func (e *estate) furnish(d *xdpfab.Domain) error { return errors.Join(e.resident(d), e.modest(d)) }

// resident makes what is resident.
func (e *estate) resident(d *xdpfab.Domain) error {
	hot, err := d.NewResidentMemory("hot", 4096)
	virtual, err2 := d.NewResidentMemory("virtual.memory", 60)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	e.memories = append(e.memories, hot, virtual)
	return e.register(d, map[string]*mr.Memory{"hot": hot, "virtual": virtual})
}

// modest makes what is not resident.
func (e *estate) modest(d *xdpfab.Domain) error {
	if err := e.register(d, map[string]*mr.Memory{"ordinary": e.ordinary}); err != nil {
		return err
	}
	for n := range 2 { // so that there can be two sessions
		ep, err := d.NewEndpoint(fi.EndpointAttr{Number: n})
		if err == nil {
			err = ep.Enable()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// register registers memory by the names of regions, as they were.
func (e *estate) register(d *xdpfab.Domain, memory map[string]*mr.Memory) error {
	for name, m := range memory {
		o := mr.Options{Name: name, Access: mr.RemoteRead | mr.RemoteWrite, Virtual: name == "virtual"}
		if was, is := e.keys[name]; is {
			o.Key, o.Incarnation = was.Key, was.Incarnation
		}
		r, err := d.Register(m, o)
		if err != nil {
			return err
		}
		if name == "hot" {
			e.hot = r
		}
		key := r.Key()
		e.keys[name] = mr.Options{Key: &key, Incarnation: r.Incarnation()}
	}
	return nil
}

// forget closes the resident memory of a domain that is closed.
func (e *estate) forget() {
	for _, m := range e.memories {
		if err := m.Close(); err != nil {
			e.t.Error(err)
		}
	}
	e.memories = nil
}

// handOver closes the domain for the next one.
func (e *estate) handOver() *host.Handover {
	e.t.Helper()
	h, err := e.dom.Hosting().HandOver(time.Minute)
	if err != nil {
		e.t.Fatal(err)
	}
	e.forget()
	return h
}

// take opens a handover.
func (e *estate) take(h *host.Handover, attr fi.DomainAttr, prepare func(*xdpfab.Domain) error) (d *xdpfab.Domain, err error) {
	err = e.side.Do(func() (err error) {
		d, err = on(fi.TakeOver(ctx(e.t), h, e.side.IfName, attr, nil, ofFi(prepare)))
		return err
	})
	return d, err
}

// goOn opens a handover, which has to succeed.
func (e *estate) goOn(h *host.Handover) {
	e.t.Helper()
	d, err := e.take(h, e.attr, e.furnish)
	if err != nil {
		e.t.Fatal(err)
	}
	e.has(d)
	d.Resume()
	if err := h.Close(); err != nil {
		e.t.Error(err)
	}
}

// dialBoth opens a domain on another side, and a session to each endpoint of the node.
func (e *estate) dialBoth(side *testnet.Side) (first, second *xdpfab.Peer) {
	e.t.Helper()
	first = e.dial(side)
	to := e.dom.Name(1)
	if !e.attr.EthernetOnly {
		to = e.side.IP4.String() + "/1"
	}
	second, err := e.dialler.Dial(ctx(e.t), to)
	if err != nil {
		e.t.Fatal(err)
	}
	return first, second
}

// restOfLoad is the pause of an adding between two operations. Several that do not pause
// would take the processors from the takeover that they watch.
const restOfLoad = 100 * time.Microsecond

// adding adds 1 to a word, again and again: each sum has to be one more than that before.
type adding struct {
	t    *testing.T
	name string
	n    atomic.Uint64 // that have succeeded
	stop atomic.Bool
	done chan struct{}
}

func add(t *testing.T, p *xdpfab.Peer, region string) *adding {
	t.Helper()
	a, w := &adding{t: t, name: region, done: make(chan struct{})}, wordOf(t, p, region)
	go func() {
		defer close(a.done)
		for i := uint64(1); !a.stop.Load(); i++ {
			if sum, err := w.Add(ctx(t), 1); err != nil || sum != i {
				t.Errorf("%s: %d, %v; want %d", region, sum, err, i)
				return
			}
			a.n.Store(i)
			time.Sleep(restOfLoad)
		}
	}()
	return a
}

// more waits until some more have succeeded.
func (a *adding) more() {
	a.t.Helper()
	was := a.n.Load()
	testnet.Eventually(a.t, "adding to "+a.name, func() bool { return a.n.Load() > was+20 || a.t.Failed() })
}

func (a *adding) end() {
	a.stop.Store(true)
	<-a.done
}

// fds returns how many file descriptors this process has.
func fds(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// Domains take over from one another beside resident regions, pinned or not, under load.
// The program answers while there is no domain, no operation fails or is done twice, no
// peer sees a restart or begins another session, and nothing is left over.
func TestTakeoverResident(t *testing.T) {
	for name, c := range map[string]struct {
		attr   fi.DomainAttr
		pinned bool
	}{
		"pinned":               {fi.DomainAttr{EthernetOnly: true}, true},
		"not pinned":           {fi.DomainAttr{EthernetOnly: true}, false},
		"pinned, UDP, key":     {fi.DomainAttr{AuthKey: fi.AuthKey("sesame, and long enough to be good")}, true},
		"not pinned, UDP, key": {fi.DomainAttr{AuthKey: fi.AuthKey("sesame, and long enough to be good")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			net := testnet.NewPair(t, testnet.Options{})
			e := newEstate(t, net.B, c.attr, c.pinned)
			p, mixed := e.dialBoth(net.A)
			hot, virtual, ordinary := add(t, p, "hot"), add(t, mixed, "virtual"), add(t, mixed, "ordinary")
			before := 0
			for i := range 2 {
				for _, a := range []*adding{hot, virtual, ordinary} {
					a.more()
				}
				h := e.handOver()
				hot.more() // there is no domain now
				e.goOn(h)
				if i == 0 {
					before = fds(t)
				}
			}
			for _, a := range []*adding{hot, virtual, ordinary} {
				a.more()
				a.end()
				if v, err := wordOf(t, p, a.name).Load(ctx(t)); v != a.n.Load() || err != nil {
					t.Errorf("%s holds %d, %v; want %d", a.name, v, err, a.n.Load())
				}
			}
			if n := fds(t); n > before {
				t.Errorf("%d file descriptors, and %d two takeovers before", n, before)
			}
			if c := stat(t, e.dom, "sessions_accepted"); c != 0 {
				t.Errorf("%d sessions were accepted, want those that went on", c)
			}
			if c := stat(t, e.dom, "resident_requests_executed"); c == 0 {
				t.Error("the program has executed nothing")
			}
			if err := e.dom.CloseAll(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(e.attr.ResidentPin); c.pinned && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder is left: %v", err)
			}
			d, err := e.tryOpen(fi.DomainAttr{}) // the interface is free
			if err != nil {
				t.Fatal(err)
			}
			if err := d.CloseAll(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A handover that is refused, or given back before Resume, leaves what is resident as it
// was: another domain goes on with it, and no operation fails.
func TestTakeoverResidentRefused(t *testing.T) {
	for name, pinned := range map[string]bool{"pinned": true, "not pinned": false} {
		t.Run(name, func(t *testing.T) {
			net := testnet.NewPair(t, testnet.Options{})
			e := newEstate(t, net.B, fi.DomainAttr{}, pinned)
			p, mixed := e.dialBoth(net.A)
			all := []*adding{add(t, p, "hot"), add(t, mixed, "virtual"), add(t, mixed, "ordinary")}
			for _, a := range all {
				a.more()
			}
			h := e.handOver()
			refused := func(want string, attr fi.DomainAttr, prepare func(*xdpfab.Domain) error) {
				t.Helper()
				d, err := e.take(h, attr, prepare)
				if err == nil {
					d.CloseAll()
				}
				if e.forget(); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
				all[0].more()
			}
			elsewhere := e.attr
			elsewhere.ResidentPin = "/sys/fs/bpf/elsewhere"
			refused("as in the domain before", elsewhere, e.furnish)
			refused("no longer wanted", e.attr, func(d *xdpfab.Domain) error { return errors.Join(e.furnish(d), errors.New("no longer wanted")) })
			refused("same memory, length, rights", e.attr, func(d *xdpfab.Domain) error {
				m, err := d.NewResidentMemory("hot", 4096)
				if err != nil {
					return err
				}
				e.memories = append(e.memories, m)
				_, err = d.Register(m, mr.Options{Name: "hot", Key: e.keys["hot"].Key, Access: mr.RemoteRead})
				return err
			})
			d, err := e.take(h, e.attr, func(d *xdpfab.Domain) error { // without the endpoints of the sessions
				m, err := d.NewResidentMemory("another", 8)
				if err == nil {
					e.memories = append(e.memories, m)
					_, err = d.Register(m, mr.Options{Name: "another"})
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.CloseAll(); err != nil {
				t.Error(err)
			}
			e.forget()
			all[0].more()
			e.goOn(h)
			for _, a := range all {
				a.more()
				a.end()
			}
			if err := e.dom.CloseAll(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the next domain does not make again ends with Resume: regions, and the sessions to
// endpoints that are gone.
func TestTakeoverResidentLess(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	e := newEstate(t, net.B, fi.DomainAttr{}, false)
	p, mixed := e.dialBoth(net.A)
	hot, virtual := wordOf(t, p, "hot"), wordOf(t, mixed, "virtual")
	for _, w := range []xdpfab.Remote[uint64]{hot, virtual} {
		if _, err := w.Add(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
	}
	h := e.handOver()
	if !h.Resides() {
		t.Error("the program of resident regions does not move")
	}
	d, err := e.take(h, e.attr, func(d *xdpfab.Domain) error {
		ep, err := d.NewEndpoint(fi.EndpointAttr{})
		if err != nil {
			return err
		}
		return ep.Enable()
	})
	if err != nil {
		t.Fatal(err)
	}
	e.has(d)
	d.Resume()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if _, err := hot.Add(ctx(t), 1); !errors.Is(err, fi.ErrNotExecuted) || !errors.Is(err, fi.ErrPeerRestarted) {
		t.Errorf("an operation on a region that is gone: %v", err)
	}
	if _, err := virtual.Add(ctx(t), 1); !errors.Is(err, fi.ErrNotExecuted) {
		t.Errorf("an operation in a session to an endpoint that is gone: %v", err)
	}
	if n := stat(t, d, "resident_sessions"); n != 0 {
		t.Errorf("%d sessions have become resident, want none", n)
	}
	e.dom = d
	if h = e.handOver(); !h.Resides() {
		t.Error("without regions, the program of resident regions does not move")
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// Two memories of one name could not be told apart by the next process.
func TestTakeoverResidentNames(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	e := newEstate(t, net.B, fi.DomainAttr{}, false)
	m, err := e.dom.NewResidentMemory("hot", 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.dom.Hosting().HandOver(time.Minute); err == nil || !strings.Contains(err.Error(), `two memories of the name "hot"`) || e.dom.Err() != nil {
		t.Errorf("%v; the domain: %v", err, e.dom.Err())
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	h := e.handOver()
	e.goOn(h)
}
