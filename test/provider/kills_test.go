// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// killsEnv is how many programs TestKills kills.
const killsEnv = "XDPFAB_PROVIDER_KILLS"

// The file of testdata/kills.c.
const (
	killedWords  = 8
	killedPosted = 0
	killedRan    = 1
	killedNever  = 2
	killedLost   = 3 // outcome unknown
	killedFields = 4
)

// killed are programs that add to words of another one, all of which may be killed.
type killed struct {
	*world
	file   []byte // what they share
	name   string
	path   string
	keeper *running
	adders []*running
}

func newKilled(t *testing.T, adders int) *killed {
	t.Helper()
	k := &killed{world: newWorld(t), name: filepath.Join(folder, "killed"), adders: make([]*running, adders)}
	k.path = k.program("kills")
	k.share()
	k.keep()
	for i := range k.adders {
		k.add(i)
	}
	return k
}

// share makes the file.
func (k *killed) share() {
	k.t.Helper()
	const size = 8 * (killedFields + 1) * killedWords
	f, err := os.Create(k.name)
	if err == nil {
		defer f.Close()
		err = errors.Join(f.Chmod(0o666), f.Truncate(size))
	}
	if err == nil {
		k.file, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = unix.Munmap(k.file) })
}

// field is a number of what an adder has done; its word if i is killedFields.
func (k *killed) field(adder, i int) []byte {
	at := 8 * (killedFields*adder + i)
	if i == killedFields {
		at = 8 * (killedFields*killedWords + adder)
	}
	return k.file[at : at+8]
}

func (k *killed) number(adder, i int) uint64 { return binary.LittleEndian.Uint64(k.field(adder, i)) }

func (k *killed) ready(p *running) *running {
	k.t.Helper()
	if got := k.line(p); got != "ready" {
		k.t.Fatalf("%v said %q", p.Args, got)
	}
	return p
}

func (k *killed) keep() {
	k.t.Helper()
	k.keeper = k.ready(k.start(1, k.path, "keep", k.name, "300", k.net.B.IP4.String()))
}

// add starts an adder: the last one on the node of the keeper. Of what its predecessor
// had in flight nobody knows whether it ran.
func (k *killed) add(i int) {
	k.t.Helper()
	lost := k.number(i, killedPosted) - k.number(i, killedRan) - k.number(i, killedNever)
	binary.LittleEndian.PutUint64(k.field(i, killedLost), lost)
	daemon := 0
	if i == len(k.adders)-1 {
		daemon = 1
	}
	k.adders[i] = k.ready(k.start(daemon, k.path, "add", k.name, strconv.Itoa(i), k.net.B.IP4.String(), "300"))
}

// check compares the words with what their adders know. They go on adding meanwhile, so
// the order of reading counts.
func (k *killed) check() {
	k.t.Helper()
	for i := range k.adders {
		ran, never := k.number(i, killedRan), k.number(i, killedNever)
		word := k.number(i, killedFields)
		if posted := k.number(i, killedPosted); word < ran || word > posted-never {
			k.t.Errorf("adder %d: the word is %d; %d additions ran, of %d posted %d never did", i, word, ran, posted, never)
		}
	}
}

// grow waits until each adder has added more.
func (k *killed) grow() {
	k.t.Helper()
	var want []uint64
	for i := range k.adders {
		want = append(want, k.number(i, killedRan)+50)
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		least := 0
		for i := range k.adders {
			if k.number(i, killedRan) >= want[i] {
				least++
			}
		}
		if least == len(want) {
			return
		}
		if time.Now().After(end) {
			for i, p := range k.adders {
				k.t.Logf("adder %d: ran %d, want %d: %s", i, k.number(i, killedRan), want[i], tail(p.said.Bytes()))
			}
			k.t.Fatalf("they add no more: %s", tail(k.keeper.said.Bytes()))
		}
	}
}

// Programs that add, and the one that has the memory, are killed under load, at any
// moment. The words, which outlive them in a file, are what the adders know: those that
// ran, and some of those of which it is unknown.
func TestKills(t *testing.T) {
	deaths := 10
	if s := os.Getenv(killsEnv); s != "" {
		var err error
		if deaths, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	k := newKilled(t, 3)
	kill := func(p *running) {
		_ = p.Process.Kill()
		_ = p.Wait()
	}
	rng := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	for n := range deaths {
		k.grow()
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
		if n%3 == 0 {
			kill(k.keeper)
			k.keep()
		} else {
			i := rng.IntN(len(k.adders))
			kill(k.adders[i])
			k.add(i)
		}
		k.check()
		if t.Failed() {
			return
		}
	}
	ran, lost := k.endAll()
	t.Logf("%d deaths: %d additions ran, of %d it is unknown", deaths, ran, lost)
}

// endAll has all programs end, and returns how many additions ran, and of how many it is
// unknown.
func (k *killed) endAll() (ran, lost uint64) {
	k.t.Helper()
	k.grow()
	for i, p := range k.adders {
		p.in.Close()
		if got := k.end(p); got != "ok" {
			k.t.Errorf("adder %d said %q", i, got)
		}
		ran += k.number(i, killedRan)
		lost += k.number(i, killedLost)
	}
	k.check()
	for i := range k.adders {
		open := k.number(i, killedPosted) - k.number(i, killedRan) - k.number(i, killedNever)
		if open != k.number(i, killedLost) {
			k.t.Errorf("adder %d: %d have not ended, %d are unknown", i, open, k.number(i, killedLost))
		}
	}
	k.keeper.in.Close()
	if got := k.end(k.keeper); got != "ok" {
		k.t.Errorf("the keeper said %q", got)
	}
	for i := range k.daemons {
		testnet.Eventually(k.t, "all guests have gone", func() bool { return len(k.status(i).Guests) == 0 })
	}
	return ran, lost
}

// A program that is stopped holds up those that operate on its memory, and nobody else.
// When it goes on nothing is lost.
func TestStopped(t *testing.T) {
	k := newKilled(t, 2)
	k.grow()
	if err := k.keeper.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	adder := k.program("adder")
	if got := k.end(k.start(0, adder, k.net.B.IP4.String(), k.key(1), "1000")); got != "1000" {
		t.Errorf("beside a program that is stopped the sum is %q", got)
	}
	if err := k.keeper.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if ran, lost := k.endAll(); lost != 0 {
		t.Errorf("%d additions ran, of %d it is unknown", ran, lost)
	}
	if never := k.number(0, killedNever) + k.number(1, killedNever); never != 0 {
		t.Errorf("%d additions were not executed", never)
	}
}
