// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// The queue that TestAdopt hands over: half of its chunks to receive into.
const adoptedRing, adoptedFrames = 64, 200

var adoption = Adoption{Queue: 1, RXSize: adoptedRing, TXSize: adoptedRing, FillSize: adoptedRing, CompletionSize: adoptedRing, TXBudget: defaultTXBudget}

// adoptingChild is a program of nobody's, without a capability, that has a socket and its
// memory as descriptors 3 and 4, and sends back what it receives.
func adoptingChild() error {
	// For every thread of this process; with them go the capabilities.
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(65534, 65534, 65534), syscall.Setresuid(65534, 65534, 65534)); err != nil {
		return err
	}
	if fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW, 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("a socket of its own: %d, %v: want EPERM", fd, err)
	}
	u, err := AdoptUMEM(4, UMEMConfig{Chunks: 2 * adoptedRing})
	if err != nil {
		return err
	}
	a := adoption
	a.UMEM = u
	s, err := Adopt(3, a)
	if err != nil {
		return err
	}
	pool, err := u.Pool(adoptedRing, adoptedRing)
	if err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		return err
	}
	for n := 0; n < adoptedFrames; {
		if _, err := s.Poll(testnet.Patience, nil); err != nil {
			return err
		}
		got := s.Fill().Reserve(s.RX().Peek(adoptedRing))
		for i := range got {
			d := s.RX().Get(i)
			addr, ok := pool.Get()
			if !ok || s.TX().Reserve(1) != 1 {
				return errors.New("no room to send")
			}
			pool.Sent(addr)
			s.TX().Set(0, Desc{Addr: addr, Len: uint32(copy(u.Chunk(addr), u.Frame(d)))})
			s.TX().Submit(1)
			s.Fill().Set(i, d.Addr)
		}
		s.RX().Release(got)
		s.Fill().Submit(got)
		for s.TX().Free() < s.TX().Size() {
			if err := s.Kick().Err(); err != nil {
				return err
			}
			pool.Reap(s.Completion(), adoptedRing)
		}
		n += got
	}
	return errors.Join(s.Close(), u.Close())
}

// A program without a privilege drives a queue that another one has bound, from where
// that one has stopped.
func TestAdopt(t *testing.T) {
	testnet.Require(t)
	if _, v := testnet.Kernel(t); !v.AtLeast(kernel.AdoptRings) {
		t.Skip("the rings of a bound socket belong to its process")
	}
	p := testnet.NewPair(t, testnet.Options{Queues: 2, Straight: true})
	a := station(t, p.A, redirect(t, p.A), Config{Queue: 1})
	u, err := NewUMEM(UMEMConfig{Chunks: 2 * adoptedRing, Share: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	b := station(t, p.B, redirect(t, p.B), Config{
		UMEM: u, Queue: 1, RXSize: adoptedRing, TXSize: adoptedRing, FillSize: adoptedRing, CompletionSize: adoptedRing})
	// The rings are in motion when they are handed over.
	for seq := uint32(0); seq < 6*16; seq += 16 {
		n := a.send(0, seq, 16)
		a.flush(t)
		b.await(t, n, func([]byte) {})
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := p.B.Command(exe)
	cmd.Env = append(os.Environ(), asChild+"=adopt")
	fds := []*os.File{handle(t, b.FD()), handle(t, u.FD())}
	cmd.ExtraFiles = fds
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make([]byte, 6)
	if n, err := out.Read(ready); err != nil || string(ready[:n]) != "ready\n" {
		_ = cmd.Wait()
		t.Fatalf("child: %q, %v: %s", ready[:n], err, complaints.String())
	}
	next := uint32(1000)
	for sent := 0; sent < adoptedFrames; {
		n := a.send(0, next, min(16, adoptedFrames-sent))
		a.flush(t)
		a.await(t, n, func(f []byte) {
			if got := check(t, f, 0); got != next {
				t.Fatalf("frame %d came back: want %d", got, next)
			}
			next++
		})
		sent += n
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("child: %v: %s", err, complaints.String())
	}
}

// handle is a descriptor as a file, which the test closes.
func handle(t *testing.T, fd int) *os.File {
	t.Helper()
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(dup), "handle")
	t.Cleanup(func() { f.Close() })
	return f
}

// What is no queue, or not the one that was described, is refused, and the descriptor
// closed.
func TestAdoptRefusals(t *testing.T) {
	testnet.Require(t)
	dup := func(fd int) int {
		t.Helper()
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	refused := func(what string, fd int, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
			t.Errorf("%s: the descriptor is open still: %v", what, err)
			unix.Close(fd)
		}
	}
	u, err := NewUMEM(UMEMConfig{Chunks: 128, Share: true})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	loose, err := unix.MemfdCreate("loose", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(loose)
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	for what, c := range map[string]struct {
		of  int
		cfg UMEMConfig
	}{
		"no memfd": {null, UMEMConfig{Chunks: 128}}, "one that can shrink": {loose, UMEMConfig{Chunks: 128}},
		"too short": {u.FD(), UMEMConfig{Chunks: 129}}, "a chunk of no size": {u.FD(), UMEMConfig{Chunks: 1, ChunkSize: 512}},
	} {
		fd := dup(c.of)
		_, err := AdoptUMEM(fd, c.cfg)
		refused(what, fd, err, ErrConfig)
	}
	p := testnet.NewPair(t, testnet.Options{})
	s := open(t, p.A, Config{UMEM: u, RXSize: 1024, TXSize: 1024, FillSize: 1024, CompletionSize: 1024})
	of, err := AdoptUMEM(dup(u.FD()), UMEMConfig{Chunks: 128})
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	good := Adoption{UMEM: of, RXSize: 1024, TXSize: 1024, FillSize: 1024, CompletionSize: 1024, TXBudget: s.TXBudget()}
	for what, change := range map[string]func(*Adoption){
		"no UMEM": func(a *Adoption) { a.UMEM = nil }, "an odd size": func(a *Adoption) { a.RXSize = 1000 }, "no ring": func(a *Adoption) { a.FillSize = 0 },
		"no budget": func(a *Adoption) { a.TXBudget = 0 },
	} {
		a := good
		change(&a)
		fd := dup(s.FD())
		_, err := Adopt(fd, a)
		refused(what, fd, err, ErrConfig)
	}
	// An old kernel lets no other process map any ring.
	_, v := testnet.Kernel(t)
	old := !v.AtLeast(kernel.AdoptRings)
	unlessOld := func(want error) error {
		if old {
			return ErrUnsupported
		}
		return want
	}
	a := good
	a.TXSize, a.TXBudget = 512, 32
	fd := dup(s.FD())
	_, err = Adopt(fd, a)
	refused("a ring that is longer", fd, err, unlessOld(ErrConfig))
	a = good
	a.RXSize = 2048
	fd = dup(s.FD())
	_, err = Adopt(fd, a)
	refused("a ring that is shorter", fd, err, unlessOld(unix.EINVAL))
	fd = dup(null)
	_, err = Adopt(fd, good)
	refused("no socket", fd, err, ErrConfig)
	if fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	_, err = Adopt(fd, good)
	unbound := ErrUnbound
	if !v.AtLeast(kernel.BusyPoll) { // whose recvfrom looks at the socket
		unbound = ErrUnsupported
	}
	refused("a socket that is not bound", fd, err, unbound)
	fd = dup(s.FD())
	whole, err := Adopt(fd, good)
	if old {
		refused("any", fd, err, ErrUnsupported)
		return
	}
	if err != nil || whole.Mode() != s.Mode() || whole.TX().Size() != 1024 || whole.Close() != nil {
		t.Errorf("%v", err)
	}
}
