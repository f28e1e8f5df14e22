// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

// sharing is processes that share parts of package sync. They are guests of one daemon,
// and the memory is another one's.
type sharing struct {
	t      *testing.T
	w      *world
	host   *daemon
	dir    string
	all    []*sharingProcess // also those that were killed
	n      int               // of them at a time
	killed int
}

// sharingProcess is one of the processes, with the files that it writes.
type sharingProcess struct {
	*leashed
	party        int
	book, claims string
	out          lockedBuffer
}

func shareParts(t *testing.T, w *world, n int) *sharing {
	t.Helper()
	must(t, w.client.CloseAll()) // the daemon needs the interface
	s := &sharing{t: t, w: w, dir: t.TempDir(), n: n}
	s.host = newDaemon(t, w.wire.A, setting{daemonArgs: []string{"--give-up", lively.String(), "--guest", "allow"}})
	s.host.start(t)
	for i := range n {
		s.join(i)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for i, p := range s.all {
				t.Logf("process %d said:\n%s", i, p.out.String())
			}
		}
	})
	return s
}

// join starts another process, which is one of the parties.
func (s *sharing) join(party int) {
	s.t.Helper()
	p := &sharingProcess{party: party, book: filepath.Join(s.dir, fmt.Sprint("book", len(s.all))),
		claims: filepath.Join(s.dir, fmt.Sprint("claims", len(s.all)))}
	must(s.t, errors.Join(os.WriteFile(p.book, make([]byte, 24), 0o600), os.WriteFile(p.claims, nil, 0o600)))
	p.leashed = leash(s.t, disguised("sharer", envAddress+"="+s.w.addr, envBook+"="+p.book, envClaims+"="+p.claims,
		fmt.Sprintf("%s=%d/%d", envParty, party, s.n), fi.ControlEnv+"="+s.host.path), nil, &p.out)
	s.all = append(s.all, p)
}

// living are the processes that were not killed.
func (s *sharing) living() []*sharingProcess {
	return slices.DeleteFunc(slices.Clone(s.all), func(p *sharingProcess) bool { return ended(p.leashed) })
}

// kill kills a process at whatever it does, and starts another one.
func (s *sharing) kill(p *sharingProcess) {
	s.t.Helper()
	must(s.t, unix.Kill(p.cmd.Process.Pid, unix.SIGKILL))
	<-p.done
	survived.add("sharers killed", 1)
	s.killed++
	s.join(p.party)
}

// goesOn waits until every living process has held the mutex once more.
func (s *sharing) goesOn() {
	s.t.Helper()
	size := func(p *sharingProcess) int64 {
		i, err := os.Stat(p.claims)
		must(s.t, err)
		return i.Size()
	}
	for _, p := range s.living() {
		was := size(p)
		for end := time.Now().Add(patience); size(p) == was; time.Sleep(2 * time.Millisecond) {
			if ended(p.leashed) || time.Now().After(end) {
				s.t.Fatalf("a process does not get the mutex any more, of which it had %d bytes of claims: %s", was, p.out.String())
			}
		}
	}
}

// hasUsedAll waits until there are claims of every kind, of which a few turns of each
// process through all parts make sure. A turn makes up to three claims.
func (s *sharing) hasUsedAll() {
	s.t.Helper()
	var n [claimKinds]int
	for range 100 {
		clear(n[:])
		for _, p := range s.all {
			for _, c := range readClaims(s.t, p.claims) {
				n[c.Of]++
			}
		}
		if !slices.Contains(n[:], 0) {
			s.t.Logf("claims of each kind: %d", n)
			return
		}
		s.goesOn()
	}
	s.t.Fatalf("there are not claims of every kind: %d", n)
}

// disturb does one thing to the processes or to the daemons.
func (s *sharing) disturb(rnd *rand.Rand, what int) {
	s.t.Helper()
	t, all := s.t, s.living()
	switch p := all[rnd.IntN(len(all))]; what {
	case 0:
		s.w.daemon.kill(t)
		time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
		s.w.daemon.start(t)
	case 1:
		s.takeOver(s.w.daemon)
	case 2:
		s.host.kill(t)
		time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
		s.host.start(t)
	case 3:
		s.takeOver(s.host)
	case 4:
		s.kill(p)
	case 5: // it may lose the mutex meanwhile, and hears of that late
		must(t, unix.Kill(p.cmd.Process.Pid, unix.SIGSTOP))
		time.Sleep(2 * partsLease)
		must(t, unix.Kill(p.cmd.Process.Pid, unix.SIGCONT))
	}
}

// disturbances is how many cases disturb has.
const disturbances = 6

func (s *sharing) takeOver(d *daemon) {
	for end := time.Now().Add(patience); !d.takeOver(s.t); { // it is refused while the former one is busy
		if time.Now().After(end) {
			s.t.Fatal("no takeover succeeds")
		}
	}
	survived.add("takeovers below parts", 1)
}

// check ends the processes, and compares what they know with one another and with the
// memory.
func (s *sharing) check() {
	t := s.t
	t.Helper()
	s.hasUsedAll()
	for _, p := range s.living() {
		must(t, unix.Kill(p.cmd.Process.Pid, unix.SIGTERM))
	}
	var claims []claim
	var posted, acked, undone uint64
	for i, p := range s.all {
		select {
		case <-p.done:
		case <-time.After(patience):
			t.Fatalf("process %d does not end: %s", i, p.out.String())
		}
		claims = append(claims, readClaims(t, p.claims)...)
		b, err := os.ReadFile(p.book)
		must(t, err)
		for j, n := range []*uint64{&posted, &acked, &undone} {
			*n += binary.NativeEndian.Uint64(b[8*j:])
		}
	}
	for _, wrong := range conflicts(claims) {
		t.Error(wrong)
	}
	var sum uint64
	for i := range shards {
		sum += s.w.word(counterAt + i*sync.CounterBytes + 16)
	}
	if sum < acked || sum > posted-undone {
		t.Errorf("the counter is %d; want %d, which were acknowledged, to %d, which may have run", sum, acked, posted-undone)
	}
	if unknown := posted - undone - acked; s.killed == 0 && unknown == 0 && sum != posted {
		t.Errorf("the counter is %d after %d additions", sum, posted)
	}
	t.Logf("held %d times, or numbers; the counter is %d, acknowledged %d, perhaps %d more", len(claims), sum, acked, posted-undone-acked)
	survived.add("locks held by processes, and numbers", len(claims))
}

// readClaims reads the claims of a process, of which the last may be half written.
func readClaims(t *testing.T, path string) (all []claim) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	for r := bytes.NewReader(b); ; {
		var c claim
		if err := binary.Read(r, binary.NativeEndian, &c); err != nil {
			if err != io.EOF && err != io.ErrUnexpectedEOF {
				t.Fatal(err)
			}
			return all
		}
		all = append(all, c)
	}
}

// Processes share parts while daemons on both sides are killed and taken over, and
// processes are killed and stopped while they hold a lock or wait for it at its home: no
// two hold the mutex, and its tokens grow; not more have the semaphore or the lock of
// readers and writers than may; no number comes twice; the counter has what was added;
// and the other parts keep what they promise.
func TestSharedParts(t *testing.T) {
	w := newWorld(t, setting{seed: 15, process: true, client: xdpfab.DomainAttr{GiveUp: lively}})
	s, rnd := shareParts(t, w, 3), rand.New(rand.NewPCG(15, 15))
	s.goesOn()
	for what := range disturbances {
		s.disturb(rnd, what)
		s.goesOn()
	}
	s.check()
}

// sharedParts is the same for longer, at random, and in bad weather.
func sharedParts(t *testing.T, rnd *rand.Rand) {
	w := newWorld(t, setting{seed: rnd.Uint64(), process: true, client: xdpfab.DomainAttr{GiveUp: lively}})
	defer burden(t, rnd)()
	s := shareParts(t, w, 2+rnd.IntN(4))
	for range 8 {
		w.wire.SetBoth(mixed(rnd))
		s.disturb(rnd, rnd.IntN(disturbances))
		if rnd.IntN(4) == 0 {
			w.wire.SetBoth(faultwire.Faults{Cut: true})
			time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
		}
		w.heal()
		s.goesOn()
	}
	s.check()
}
