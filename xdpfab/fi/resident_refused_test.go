// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// program returns the id of the XDP program that the node's interface runs.
func (h *homestead) program() (id uint32) {
	h.t.Helper()
	err := h.side.Do(func() error {
		b, err := bpf.Holder(h.side.IfName, h.side.IfIndex)
		if b != nil {
			id = b.ProgramID
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// atWork keeps the session of a handle at work until it is idle, which the caller says. A
// session without work for 30 s is closed, and with nobody there no other is opened.
func atWork(t *testing.T, w xdpfab.Remote[uint64]) (idle func()) {
	done := make(chan struct{})
	var loads sync.WaitGroup
	loads.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
			}
			if _, err := w.Load(ctx(t)); err != nil {
				t.Errorf("while nobody is there: %v", err)
				return
			}
		}
	})
	idle = sync.OnceFunc(func() {
		close(done)
		loads.Wait()
	})
	t.Cleanup(idle)
	return idle
}

// A process that cannot go on with what was left is told what to do about it. It leaves
// all as it was: the former program goes on, and a process that fits has it.
func TestResidentAdoptionRefused(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	h := newHomestead(t, net.B, fi.DomainAttr{ResidentLeave: true})
	h.open()
	p := h.dial(net.A)
	hot := wordOf(t, p, "hot")
	n, err := hot.Add(ctx(t), 1) // from here on the session is resident
	if err := errors.Join(err, h.dom.CloseAll()); err != nil {
		t.Fatal(err)
	}
	id := h.program()
	mac := h.dom.Interface().MAC
	idle := atWork(t, hot)
	for _, of := range []struct {
		name      string
		change    func(*fi.DomainAttr)
		before    string // of ip, to bring it about
		after     string
		want      string
		elsewhere bool // peers cannot reach the node meanwhile
		apart     bool // what was left has nothing to do with it, so its end is no remedy
	}{
		{name: "without UDP", change: func(a *fi.DomainAttr) { a.EthernetOnly = true }, want: "--udp"},
		{name: "zero-copy", change: func(a *fi.DomainAttr) { a.Copy = fi.ZeroCopyForce }, want: "want the copy mode auto or copy", apart: true},
		{name: "another address", before: "link set veth0 address 02:11:22:33:44:55", after: "link set veth0 address " + mac, want: mac, elsewhere: true},
	} {
		t.Run(of.name, func(t *testing.T) {
			if of.name == "zero-copy" && testnet.Granted(t).Copy == of.name {
				t.Skipf("%s has it", h.dom.Interface().Driver)
			}
			if of.elsewhere {
				idle()
			}
			attr := h.attr
			if of.change != nil {
				of.change(&attr)
			}
			if of.before != "" {
				out, err := h.side.Command("ip", strings.Fields(of.before)...).CombinedOutput()
				if err != nil && testnet.Borrowed(t) != nil {
					t.Skipf("this driver refuses it while it has a program: ip %s: %s", of.before, out)
				}
				if err != nil {
					t.Fatalf("ip %s: %v: %s", of.before, err, out)
				}
			}
			d, err := h.tryOpen(attr)
			if err == nil {
				d.CloseAll()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), of.want) || strings.Contains(err.Error(), "xdpfab resident remove "+h.attr.ResidentPin) == of.apart {
				t.Errorf("%v; want the remedies, one of them with %q", err, of.want)
			}
			if now := h.program(); now != id {
				t.Errorf("program %d, want the former %d", now, id)
			}
			if of.after != "" {
				testnet.IP(t, h.side, of.after)
			}
			if of.elsewhere {
				return
			}
			n++
			if v, err := hot.Add(ctx(t), 1); v != n || err != nil { // nobody is there
				t.Errorf("%d, %v; want %d", v, err, n)
			}
		})
	}
	if testnet.Borrowed(t) == nil {
		testnet.IP(t, h.side, "link set veth0 mtu 3000") // longer frames than the program's are no obstacle
	}
	h.open()
	if v, err := hot.Add(ctx(t), 1); v != n+1 || err != nil {
		t.Errorf("in the next process that fits: %d, %v; want %d", v, err, n+1)
	}
}

// So is one that finds what was left damaged.
func TestResidentDamaged(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	h := newHomestead(t, net.B, fi.DomainAttr{ResidentLeave: true})
	h.open()
	if err := h.dom.CloseAll(); err != nil {
		t.Fatal(err)
	}
	id := h.program()
	found, err := filepath.Glob(filepath.Join(h.attr.ResidentPin, "v*", "records"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if err := os.Remove(found[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := h.tryOpen(h.attr); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "xdpfab resident remove") {
		t.Errorf("opened over a damaged state: %v", err)
	}
	if now := h.program(); now != id {
		t.Errorf("program %d, want the former %d", now, id)
	}
}
