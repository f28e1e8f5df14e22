// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// home is the number of the node with the memory. The others use it.
const home = 0

const regionBytes = 4096

// world is a network in memory with a home, whose region "parts" the others use.
type world struct {
	t   *testing.T
	rng *rand.Rand // of one goroutine
	net *xdpfab.Network
	mem *mr.Memory // of the home; nil if it was lost
	reg *mr.Region // in which the home serves it now
}

// worlds is how many worlds there are at a time: on a busy machine more would have no
// time to keep their leases.
var worlds = make(chan struct{}, 3)

// eachSeed runs a test on a few seeds, or as many as XDPFAB_SEEDS says, some at a time,
// until one fails.
func eachSeed(t *testing.T, clients int, f func(w *world)) {
	testnet.SkipOnNICs(t, "a network in memory")
	seeds, first := 2, 1
	if n, err := strconv.Atoi(os.Getenv("XDPFAB_SEEDS")); err == nil {
		seeds = n
	}
	if n, err := strconv.Atoi(os.Getenv("XDPFAB_FIRST_SEED")); err == nil {
		first = n
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint("seed", seed), func(sub *testing.T) {
			sub.Parallel()
			worlds <- struct{}{}
			defer func() { <-worlds }()
			if t.Failed() {
				sub.Skip("another seed fails")
			}
			f(newWorld(sub, clients, uint64(seed)))
		})
	}
}

func newWorld(t *testing.T, clients int, seed uint64) *world {
	t.Helper()
	// No node is given up: a goroutine may have no time for as long as that.
	net, err := xdpfab.NewNetwork(1+clients, xdpfab.DomainAttr{GiveUp: testnet.Patience})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 0)), net: net}
	t.Cleanup(func() {
		if err := w.net.Close(); err != nil {
			t.Error(err)
		}
		if err := w.mem.Close(); err != nil {
			t.Error(err)
		}
		// Package testing keeps w until all seeds have ended, which is 10 MB.
		w.net, w.mem = nil, nil
	})
	w.serve(net.Node(home))
	return w
}

// serve has the home serve its memory, which it makes if there is none.
func (w *world) serve(d *xdpfab.Domain) {
	w.t.Helper()
	var err error
	if w.mem == nil {
		if w.mem, err = mr.Alloc(regionBytes, mr.AllocOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	ep, err := d.NewEndpoint(xdpfab.EndpointAttr{})
	reg, err2 := d.Register(w.mem, mr.Options{Name: "parts", Access: mr.RemoteRead | mr.RemoteWrite})
	if err := errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		w.t.Fatal(err)
	}
	w.reg = reg
}

// restart has the home die at whatever it does and come back, with its memory or with new
// one.
func (w *world) restart(keep bool) {
	w.t.Helper()
	err := w.net.Partition(home)
	if err == nil {
		err = w.net.Crash(home)
	}
	if !keep {
		err = errors.Join(err, w.mem.Close())
		w.mem = nil
	}
	d, err2 := w.net.Restart(home)
	if err := errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
	w.serve(d)
	w.net.Heal()
}

// bad has the network lose, repeat and reorder packets from now on, or not.
func (w *world) bad(is bool) {
	w.t.Helper()
	f := xdpfab.Faults{}
	if is {
		f = xdpfab.Faults{Loss: 0.03, Duplicate: 0.03, Reorder: 0.05}
	}
	for i := 0; ; i++ {
		if w.net.SetFaults(home, i, f) != nil || w.net.SetFaults(i, home, f) != nil {
			return // no more nodes
		}
	}
}

// place is the place of a part, at the beginning of the region, as a node uses it now.
func (w *world) place(ctx context.Context, node int) (Place, error) {
	p, err := w.net.Node(node).Dial(ctx, w.net.Node(home).Name(0))
	return Place{Home: p, Region: "parts"}, err
}

// at is place in a network that works.
func (w *world) at(node int, offset uint64) Place {
	w.t.Helper()
	p, err := w.place(patient(w.t), node)
	if err != nil {
		w.t.Fatal(err)
	}
	p.Offset = offset
	return p
}

// faults are what disturb does.
type faults struct {
	crashes  bool // of clients
	keeps    bool // restarts of the home that keep its memory
	forgets  bool // restarts of the home that lose it
	clients  int
	between  time.Duration // at most, between two
	howOften int
	calls    time.Duration // for how long the clients' contexts last, at most; 0 means 200 ms
	cut      time.Duration // for how long a client is cut off, at most; 0 means between
}

// disturb does things to the network, and ends with one that works. The caller's
// goroutine has w.rng.
func (w *world) disturb(f faults) {
	w.bad(true)
	for range f.howOften {
		time.Sleep(rand.N(f.between))
		client := 1 + w.rng.IntN(f.clients)
		switch what := w.rng.IntN(8); {
		case what < 2:
			w.bad(what == 0)
		case what < 4:
			if err := w.net.Partition(client); err != nil {
				w.t.Error(err)
			}
			time.Sleep(rand.N(cmp.Or(f.cut, f.between)))
			w.net.Heal()
		case what < 6 && f.crashes:
			if _, err := w.net.Restart(client); err != nil {
				w.t.Error(err)
			}
		case what == 6 && f.keeps:
			w.restart(true)
		case what == 7 && f.forgets:
			w.restart(false)
		}
	}
	w.bad(false)
}

// busy has clients do something again and again while the network is disturbed, each time
// with a context that ends soon, and once more afterwards, one after the other,
// until there is no error.
func (w *world) busy(clients int, f faults, do func(ctx context.Context, client int, at Place, rng *rand.Rand) error) {
	w.t.Helper()
	var all sync.WaitGroup
	var turn sync.Mutex
	disturbed := make(chan struct{})
	for i := range clients {
		rng := rand.New(rand.NewPCG(w.rng.Uint64(), 0))
		all.Go(func() {
			once := func(patience time.Duration) error {
				ctx, cancel := context.WithTimeout(w.t.Context(), patience)
				defer cancel()
				at, err := w.place(ctx, 1+i)
				if err == nil {
					err = do(ctx, i, at, rng)
				}
				return err
			}
			for {
				select {
				case <-disturbed:
				default:
					_ = once(time.Duration(rng.Int64N(int64(cmp.Or(f.calls, 200*time.Millisecond)))))
					continue
				}
				break
			}
			turn.Lock()
			defer turn.Unlock()
			err := once(testnet.Patience)
			for end := time.Now().Add(testnet.Patience); err != nil && time.Now().Before(end); {
				err = once(testnet.Patience)
			}
			if err != nil {
				w.t.Errorf("client %d, in a network that works: %v", i, err)
			}
		})
	}
	f.clients = clients
	w.disturb(f)
	close(disturbed)
	all.Wait()
}

// patient ends with the patience of a test.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testnet.Patience)
	t.Cleanup(cancel)
	return ctx
}

// must returns the value of a call that may not fail.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
