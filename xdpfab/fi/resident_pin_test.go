// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// homestead is a node whose resident part outlives its domain.
type homestead struct {
	t       *testing.T
	side    *testnet.Side
	attr    fi.DomainAttr
	dom     *xdpfab.Domain
	virtual *mr.Region
	opened  int
	dialler *xdpfab.Domain // of the last dial
}

func newHomestead(t *testing.T, side *testnet.Side, attr fi.DomainAttr) *homestead {
	t.Helper()
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18: see TestResidentRefused")
	}
	attr.ResidentPin = filepath.Join(testnet.BPFFS(t), "xdpfab", "node")
	return &homestead{t: t, side: side, attr: attr}
}

// tryOpen opens the domain as the next process would.
func (h *homestead) tryOpen(attr fi.DomainAttr) (d *xdpfab.Domain, err error) {
	err = h.side.Do(func() (err error) {
		d, err = xdpfab.Open(ctx(h.t), h.side.IfName, attr)
		return err
	})
	return d, err
}

// open opens the domain, and has it make what it made before.
func (h *homestead) open() {
	h.t.Helper()
	d, err := h.tryOpen(h.attr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.dom = d
	h.t.Cleanup(func() { d.CloseAll() })
	if h.opened++; h.opened%2 == 0 { // so that the domain's key has another number
		small, err := mr.Alloc(8, mr.AllocOptions{})
		if err != nil {
			h.t.Fatal(err)
		}
		h.t.Cleanup(func() { small.Close() })
		if _, err := d.Register(small, mr.Options{AuthKey: []byte("another one")}); err != nil {
			h.t.Fatal(err)
		}
	}
	_, err = d.NewResidentRegion("hot", 4096)
	m, err2 := d.NewResidentMemory("virtual.memory", 60)
	if err := errors.Join(err, err2); err != nil {
		h.t.Fatal(err)
	}
	h.virtual, err = d.Register(m, mr.Options{Name: "virtual", Access: mr.RemoteRead | mr.RemoteWrite, Virtual: true, Length: 56})
	_, err2 = d.NewRegion("ordinary", 64)
	ep, err3 := d.NewEndpoint(fi.EndpointAttr{})
	if err := errors.Join(err, err2, err3); err != nil {
		h.t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		h.t.Fatal(err)
	}
	d.Resume()
}

// dial opens a domain on another side, and a session to the node.
func (h *homestead) dial(side *testnet.Side) *xdpfab.Peer {
	h.t.Helper()
	var d *xdpfab.Domain
	err := side.Do(func() (err error) {
		d, err = xdpfab.Open(ctx(h.t), side.IfName, fi.DomainAttr{AuthKey: h.attr.AuthKey, EthernetOnly: h.attr.EthernetOnly})
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { d.CloseAll() })
	to := h.dom.Name(0)
	if !h.attr.EthernetOnly {
		to = h.side.IP4.String()
	}
	h.dialler = d
	p, err := d.Dial(ctx(h.t), to)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func wordOf(t *testing.T, p *xdpfab.Peer, region string) xdpfab.Remote[uint64] {
	t.Helper()
	w, err := xdpfab.Word[uint64](ctx(t), p, region, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The resident part of a domain goes on without it: with its session, its memory, an
// authorization key and virtual addresses. The next domain takes it back, and the peer
// sees no restart.
func TestResidentPin(t *testing.T) {
	for name, attr := range map[string]fi.DomainAttr{
		"Ethernet": {EthernetOnly: true}, "UDP and a key": {AuthKey: fi.AuthKey("sesame, and long enough to be good")},
	} {
		t.Run(name, func(t *testing.T) {
			net := testnet.NewPair(t, testnet.Options{})
			attr.ResidentLeave = true
			h := newHomestead(t, net.B, attr)
			h.open()
			p := h.dial(net.A)
			hot, virtual, n := wordOf(t, p, "hot"), wordOf(t, p, "virtual"), uint64(0)
			key, incarnation := h.virtual.Key(), h.virtual.Incarnation()
			add := func() {
				t.Helper()
				for range 20 {
					n++
					for _, w := range []xdpfab.Remote[uint64]{hot, virtual} {
						if v, err := w.Add(ctx(t), 1); v != n || err != nil {
							t.Fatalf("%d, %v; want %d", v, err, n)
						}
					}
				}
			}
			for range 2 {
				add()
				if err := h.dom.CloseAll(); err != nil {
					t.Fatal(err)
				}
				add() // nobody is there
				h.open()
				own, err := h.virtual.Uint64(0)
				if err != nil || own.Load() != n || h.virtual.Key() != key || h.virtual.Incarnation() != incarnation {
					t.Fatalf("%v; key %#x and incarnation %#x, want %#x and %#x", err, h.virtual.Key(), h.virtual.Incarnation(), key, incarnation)
				}
			}
			add()
			if c := stat(t, h.dom, "sessions_accepted"); c != 0 {
				t.Errorf("%d sessions were accepted, want the one that went on", c)
			}
			if v, err := wordOf(t, p, "ordinary").Add(ctx(t), 1); v != 1 || err != nil { // by the poller, in the same session
				t.Errorf("%d, %v", v, err)
			}
			add()
		})
	}
}

// A domain that closes in order leaves nothing, and so does one that finds less than it
// wants: what no region was registered for ends.
func TestResidentPinEnds(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	h := newHomestead(t, net.B, fi.DomainAttr{ResidentLeave: true})
	h.open()
	p := h.dial(net.A)
	hot := wordOf(t, p, "hot")
	if _, err := hot.Add(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := h.tryOpen(h.attr); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("opened twice: %v", err)
	}
	if err := h.dom.CloseAll(); err != nil {
		t.Fatal(err)
	}
	other := h.attr
	other.EthernetOnly = !other.EthernetOnly
	if _, err := h.tryOpen(other); err == nil || !strings.Contains(err.Error(), "xdpfab resident remove "+h.attr.ResidentPin) {
		t.Errorf("opened with UDP: %v", err)
	}
	if _, err := h.tryOpen(fi.DomainAttr{}); !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "xdpfab resident") {
		t.Errorf("opened without the folder: %v", err)
	}
	other = h.attr
	other.ResidentLeave = false
	d, err := h.tryOpen(other) // which does not take the region back
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.NewResidentRegion("hot", 8192); err != nil { // another one
		t.Fatal(err)
	}
	ep, err := d.NewEndpoint(fi.EndpointAttr{})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	d.Resume()
	if _, err := hot.Add(ctx(t), 1); !errors.Is(err, fi.ErrNotExecuted) || !errors.Is(err, fi.ErrPeerRestarted) {
		t.Errorf("an operation on a region that is gone: %v", err)
	}
	if v, err := wordOf(t, p, "hot").Add(ctx(t), 1); v != 1 || err != nil {
		t.Errorf("the region in its place: %d, %v", v, err)
	}
	if err := d.CloseAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.attr.ResidentPin); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	h.attr.ResidentPin = filepath.Join(t.TempDir(), "node")
	if _, err := h.tryOpen(h.attr); !errors.Is(err, syscall.ENOTSUP) || !strings.Contains(err.Error(), "mount -t bpf") {
		t.Errorf("opened in a folder of another file system: %v", err)
	}
	if _, err := h.tryOpen(fi.DomainAttr{ResidentLeave: true}); err == nil {
		t.Error("opened to leave what is in no folder")
	}
	if _, _, err := xdpfab.Pipe(fi.DomainAttr{ResidentPin: "/sys/fs/bpf/x"}); !errors.Is(err, fi.ErrNotImplemented) {
		t.Errorf("a pipe: %v", err)
	}
}

// A process that ends before it goes on with what it has found may leave two regions that
// differ only in the memory that they are over. The next process that asks for one gets
// that one.
func TestResidentPinTwice(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	h := newHomestead(t, net.B, fi.DomainAttr{ResidentLeave: true})
	register := func(d *xdpfab.Domain, size int) *mr.Region {
		t.Helper()
		m, err := d.NewResidentMemory("hot", size)
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Register(m, mr.Options{Name: "hot", Access: mr.RemoteRead, Length: 8})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var key uint64
	for i := range 10 {
		d, err := h.tryOpen(h.attr)
		if err != nil {
			t.Fatal(err)
		}
		switch i {
		case 0:
			register(d, 64)
			d.Resume()
		case 1:
			key = register(d, 128).Key()
		default: // regions are listed in any order
			if r := register(d, 128); r.Key() != key {
				t.Errorf("process %d has key %#x, want %#x", i, r.Key(), key)
			}
		}
		if err := d.CloseAll(); err != nil {
			t.Fatal(err)
		}
	}
}

// In the moment in which a domain closes that leaves what is resident, nobody hears how
// far a session has got, nor begins another one, while the program goes on with it: the
// next domain answers.
func TestResidentLeaveIsSilent(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	h := newHomestead(t, net.B, fi.DomainAttr{ResidentLeave: true})
	h.open()
	hot := wordOf(t, h.dial(net.A), "hot")
	if _, err := hot.Add(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	before, redirected := stat(t, h.dom, "hellos"), stat(t, h.dom, "xdp_redirect")
	h.dom.Depart()
	dialling, answered := ctx(t), make(chan error, 1)
	go func() {
		p, err := h.dialler.Dial(dialling, h.dom.Name(1)) // there is no such endpoint, which only a process can say
		if err == nil {
			_, err = xdpfab.Word[uint64](dialling, p, "hot", 0)
		}
		answered <- err
	}()
	testnet.Eventually(t, "a hello", func() bool { return stat(t, h.dom, "xdp_redirect") > redirected+3 })
	for i := uint64(2); i < 50; i++ {
		if v, err := hot.Add(ctx(t), 1); v != i || err != nil {
			t.Fatalf("%d, %v; want %d", v, err, i)
		}
	}
	if now := stat(t, h.dom, "hellos"); now != before || len(answered) > 0 {
		t.Errorf("%d hellos were looked at, want none; answered %d", now-before, len(answered))
	}
	if err := h.dom.CloseAll(); err != nil {
		t.Fatal(err)
	}
	h.open()
	if err := <-answered; !errors.Is(err, fi.ErrNotExecuted) {
		t.Errorf("%v: want to hear that there is no such endpoint", err)
	}
	if v, err := hot.Add(ctx(t), 1); v != 50 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}
