// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/fabrictest"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Programs behind a daemon wait for a lock at its home, too, and get it in their order.
func TestMutexOfGuestsWaitsAtHome(t *testing.T) {
	const guests = 4
	w := newWorld(t, 1, 1)
	const lease = 24 * time.Hour // nobody renews it, nor looks whether it is over
	words := must(xdpfab.Vector[uint64](patient(t), w.at(1, 0).Home, "parts"))(t)
	holder := newTestMutex(w, 1, lease)
	if err := words.Store(patient(t), []uint64{ticketWord, turnWord}, []uint64{4, 5 << beatBits}); err != nil {
		t.Fatal(err)
	}
	h := must(holder.Lock(patient(t)))(t)
	got := make(chan uint64, guests)
	var unlocked sync.WaitGroup // before their domains are closed
	defer unlocked.Wait()
	for i := range guests {
		g := fabrictest.Guest(t, w.net.Node(1), xdpfab.DomainAttr{})
		p := must(g.Dial(patient(t), w.net.Node(home).Name(0)))(t)
		m := must(NewMutex(patient(t), Place{Home: p, Region: "parts"}, lease))(t)
		unlocked.Go(func() {
			h, err := m.Lock(patient(t))
			if err == nil {
				got <- h.Token() - m.epoch
				err = h.Unlock()
			}
			if err != nil {
				t.Error(err)
				got <- 0
			}
		})
		testnet.Eventually(t, "programs wait at the home", func() bool {
			q, is := w.reg.Queues().(*waiting.Queues)
			return is && q.Len() == i+1
		})
	}
	if err := h.Unlock(); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(guests) {
		if x := <-got; x != 6+i {
			t.Errorf("ticket %d got the lock, want %d", x, 6+i)
		}
	}
}
