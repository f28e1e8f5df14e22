// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A guest's book has three numbers: operations that it was about to post, those that are
// acknowledged, and those that are known not to have been executed. Each is written when
// it is known, so that after a kill they bound what the guest has added:
//
//	acknowledged <= added <= posted - not executed
type guestBook struct {
	mu                    sync.Mutex
	file                  *os.File
	posted, acked, undone uint64
}

func (b *guestBook) write(count *uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	*count++
	var text []byte
	for _, n := range []uint64{b.posted, b.acked, b.undone} {
		text = binary.NativeEndian.AppendUint64(text, n)
	}
	_, err := b.file.WriteAt(text, 0)
	return err
}

// guestMain adds to a word through a daemon until it is killed, whatever becomes of the
// daemon.
func guestMain() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	file, err := os.OpenFile(os.Getenv(envBook), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	var d *xdpfab.Domain
	var p *xdpfab.Peer
	for p == nil { // the daemon may be dead at the moment
		if d == nil {
			d, err = xdpfab.Open(ctx, veth.IfName, xdpfab.DomainAttr{Attach: fi.AttachAlways, GiveUp: lively})
		}
		if err == nil {
			p, err = d.Dial(ctx, os.Getenv(envAddress))
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
		err = nil
	}
	w := xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: regionKey}, 0)
	b := &guestBook{file: file}
	failed := make(chan error)
	for range 4 {
		go func() { failed <- b.fill(ctx, w) }()
	}
	return <-failed
}

// fill adds and keeps the book.
func (b *guestBook) fill(ctx context.Context, w xdpfab.Remote[uint64]) error {
	for {
		if err := b.write(&b.posted); err != nil {
			return err
		}
		var err error
		switch _, e := w.Add(ctx, 1); {
		case e == nil:
			err = b.write(&b.acked)
		case errors.Is(e, xdpfab.ErrNotExecuted):
			err = b.write(&b.undone)
			time.Sleep(time.Millisecond)
		case !errors.Is(e, xdpfab.ErrOutcomeUnknown):
			err = e
		}
		if err != nil {
			return err
		}
	}
}

// guestProcess is a guest that can be killed.
type guestProcess struct {
	*leashed
	out  lockedBuffer
	book string
}

// startGuest starts a guest of a daemon.
func startGuest(t *testing.T, w *world, host *daemon) *guestProcess {
	t.Helper()
	g := &guestProcess{book: filepath.Join(t.TempDir(), "book")}
	must(t, os.WriteFile(g.book, make([]byte, 24), 0o600))
	g.leashed = leash(t, disguised("guest", envAddress+"="+w.addr, envBook+"="+g.book, fi.ControlEnv+"="+host.path), w.wire.A, &g.out)
	return g
}

// read returns what the book says.
func (g *guestProcess) read(t *testing.T) (acked, most uint64) {
	t.Helper()
	b, err := os.ReadFile(g.book)
	must(t, err)
	at := binary.NativeEndian.Uint64
	return at(b[8:]), at(b) - at(b[16:])
}

// kill kills the guest, which must be alive, and returns what its book says.
func (g *guestProcess) kill(t *testing.T) (acked, most uint64) {
	t.Helper()
	select {
	case <-g.done:
		t.Errorf("a guest has ended by itself: %s", g.out.String())
	default:
		must(t, unix.Kill(g.cmd.Process.Pid, unix.SIGKILL))
	}
	g.letGo()
	survived.add("guest kills", 1)
	return g.read(t)
}

// descriptors is how many files the daemon has open.
func (d *daemon) descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.pid))
	must(t, err)
	return len(all)
}

// killGuests has guests add to one word through a daemon, and kills guests and daemon in
// turn. In the end the word is what the books say, and the daemon has nothing of them.
func killGuests(t *testing.T, w *world, rnd *rand.Rand, guests, kills int) {
	t.Helper()
	must(t, w.client.CloseAll()) // the daemon needs the interface
	host := newDaemon(t, w.wire.A, setting{udp: w.addr == w.wire.B.IP4.String()})
	host.start(t)
	var acked, most uint64
	end := func(g *guestProcess) {
		a, m := g.kill(t)
		acked, most = acked+a, most+m
	}
	eventually := func(what string, f func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !f(); time.Sleep(2 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after %v still not: %s\n%s", patience, what, host.out.String())
			}
		}
	}
	works := func(g *guestProcess) {
		t.Helper()
		before, _ := g.read(t)
		eventually("a guest adds", func() bool { now, _ := g.read(t); return now > before+20 })
	}
	all := make([]*guestProcess, guests)
	for i := range all {
		all[i] = startGuest(t, w, host)
	}
	for range kills {
		time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
		if i := rnd.IntN(guests + 1); i < guests {
			end(all[i])
			all[i] = startGuest(t, w, host)
		} else {
			host.kill(t)
			time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond)
			host.start(t)
		}
	}
	w.heal()
	for _, g := range all {
		works(g) // also one that the daemon's death has met
	}
	for _, g := range all {
		end(g)
	}
	empty := func() bool {
		s, err := host.status(t)
		return err == nil && len(s.Guests) == 0
	}
	eventually("all guests gone", empty)
	had := host.descriptors(t)
	another := startGuest(t, w, host)
	works(another)
	end(another)
	eventually("the last guest gone", empty)
	eventually("the descriptors given back", func() bool { return host.descriptors(t) <= had })
	if v := w.word(0); v < acked || v > most {
		t.Errorf("the word is %d, want %d (acknowledged) to %d (acknowledged or unknown)", v, acked, most)
	}
}

// Guests and their daemon are killed at random.
func TestGuestsAndDaemonKilled(t *testing.T) {
	w := newWorld(t, setting{seed: 9})
	killGuests(t, w, rand.New(rand.NewPCG(9, 9)), 2, 4)
}

// guestKills is the same for longer, in bad weather.
func guestKills(t *testing.T, rnd *rand.Rand) {
	w := newWorld(t, setting{seed: rnd.Uint64(), udp: rnd.IntN(2) == 0, resident: resides(rnd)})
	defer burden(t, rnd)()
	if w.addr == w.wire.B.MAC.String() { // UDP resolves by ARP, which gives up sooner than this weather ends
		w.wire.SetBoth(mixed(rnd))
	}
	killGuests(t, w, rnd, 2+rnd.IntN(3), 10)
}
