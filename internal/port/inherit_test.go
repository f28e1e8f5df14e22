// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

// A borrower gets its frames while one user of the interface after the other leaves it,
// and while nobody has it. The next one takes the queue back.
func TestInherit(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 3, Straight: true})
	requireLoans(t)
	a, b := open(t, p.A, Options{}), open(t, p.B, Options{Lend: 2})
	s := newStream(t, a, b, wire.Ethernet, 2)
	nobody := func([]byte) { t.Error("a frame went to the host") }
	b.Mind(nobody, onlyKept(t))
	unused, err := b.Lend()
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.Lend()
	if err != nil || l.Parts.Number != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	unused.Return()
	socket, err := unix.FcntlInt(uintptr(l.Socket), unix.F_DUPFD_CLOEXEC, 0)
	memory, err2 := unix.FcntlInt(uintptr(l.Memory), unix.F_DUPFD_CLOEXEC, 0)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	l.Passed()
	q, err := Adopt(l.Parts, socket, memory)
	if err != nil {
		t.Fatal(err)
	}
	gets := func() {
		t.Helper()
		s.run(t, a.Queues()[2], q, 600, 16)
	}
	for lap := range 3 {
		gets()
		left, err := b.Leave()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		l.Close()
		gets()
		if n, err := tryOpen(p.B, Options{Inherit: left, Queues: 3}); !errors.Is(err, xsk.ErrNoQueue) {
			t.Errorf("%v, %v: want a queue fewer", n.Interface, err)
		}
		gets()
		if lap > 0 { // one that gives up changes nothing
			n, err := tryOpen(p.B, Options{Inherit: left, Lend: 2})
			if err != nil {
				t.Fatal(err)
			}
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
			gets()
		}
		b = open(t, p.B, Options{Inherit: left, Lend: 2})
		left.Close()
		b.Settle()
		b.Mind(nobody, onlyKept(t))
		if _, err := b.Inherited(1); !errors.Is(err, ErrNoneLendable) {
			t.Errorf("a queue that nobody has: %v", err)
		}
		if l, err = b.Inherited(2); err != nil {
			t.Fatal(err)
		}
		testnet.Eventually(t, "queue 1 is free", func() bool { return b.Spares()[0] == LendableQueue{1, LendableFree, 1} })
		if b.Spares()[1] != (LendableQueue{2, LendableLent, 1}) {
			t.Errorf("%+v", b.Spares())
		}
	}
	gets()
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	l.Return()
	testnet.Eventually(t, "queue 2 is free", func() bool { return b.Spares()[1] == LendableQueue{2, LendableFree, 1} })
	for _, n := range []int{1, 2} {
		if again, err := b.Lend(); err != nil || again.Parts.Number != n {
			t.Errorf("%+v, %v", again, err)
		} else {
			again.Return()
		}
	}
}

// The program that takes another's place runs in that one's mode. A forced mode that is
// another one is refused, and changes nothing.
func TestInheritMode(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	for _, c := range []struct{ has, other bpf.Mode }{{bpf.Generic, bpf.Native}, {bpf.Native, bpf.Generic}} {
		b := open(t, p.B, Options{RingSize: 32, XDP: c.has})
		left, err := b.Leave()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = tryOpen(p.B, Options{RingSize: 32, Inherit: left, XDP: c.other})
		if err == nil || !strings.Contains(err.Error(), "runs in "+c.has.String()+" mode") {
			t.Errorf("%v, want a refusal of %v mode", err, c.other)
		}
		for _, may := range []bpf.Mode{c.has, bpf.Any, bpf.Auto} {
			n, err := tryOpen(p.B, Options{RingSize: 32, Inherit: left, XDP: may})
			if err != nil {
				t.Fatal(err)
			}
			if m := n.Modes(); m.XDP != c.has {
				t.Errorf("%v mode in the place of %v", m.XDP, c.has)
			}
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
		}
		left.Close()
	}
}
