// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	lib "github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A daemon with a resident region is killed while the first session of a peer finds out
// whether long frames pass. The XDP program, which stays, answers no probe of that
// session, short or long: it has none of it before its first request. So the peer takes
// the target for a silent one, and the path for no narrow one.
func TestResidentDiesInProof(t *testing.T) {
	wire := faultwire.New(t, faultwire.Options{})
	d, _, flags := pinned(t, wire.B)
	dom := clientOn(t, wire.A)
	wire.SetBoth(faultwire.Faults{Delay: 100 * time.Millisecond}) // the first probe arrives after the kill
	add := func() error {
		p, err := dom.Dial(t.Context(), d.addr())
		if err != nil {
			return err
		}
		w, err := lib.Word[uint64](t.Context(), p, "hot", 0)
		if err != nil {
			return err
		}
		_, err = w.Add(t.Context(), 1)
		return err
	}
	added := make(chan error, 1)
	go func() { added <- add() }()
	testnet.Eventually(t, "a session", func() bool { return d.counters()["sessions_accepted"] > 0 })
	d.crash()
	wire.SetBoth(faultwire.Faults{})
	testnet.Eventually(t, "the end of the session, or of its proof", func() bool {
		return counter(t, dom, "sessions_failed")+counter(t, dom, "paths_narrow") > 0
	})
	again(t, wire.B, d.socket, flags...)
	<-added
	testnet.Eventually(t, "an operation", func() bool { return add() == nil })
	if n := counter(t, dom, "paths_narrow"); n != 0 {
		t.Errorf("%d paths are narrow, want none", n)
	}
}

func clientOn(t *testing.T, side *testnet.Side) (dom *lib.Domain) {
	t.Helper()
	err := side.Do(func() (err error) {
		dom, err = lib.Open(t.Context(), side.IfName, fi.DomainAttr{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dom.CloseAll() })
	return dom
}

func counter(t *testing.T, dom *lib.Domain, name string) uint64 {
	t.Helper()
	all, err := dom.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return all[name]
}
