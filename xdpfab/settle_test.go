// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// unsettledCall is a call on a word that holds 40.
type unsettledCall struct {
	name string
	// begin makes the call, and returns what settles it: what the call means then, and
	// the error.
	begin func(ctx context.Context, h handles) (settle func(context.Context) (string, error), err error)
	want  string // if it ran
	word  uint64 // if it ran; 40 if not
}

// handles are ways to a word.
type handles struct {
	peer   *xdpfab.Peer
	region xdpfab.RemoteRegion
	word   xdpfab.Remote[uint64]
	vector xdpfab.RemoteVector[uint64]
	at     []uint64
}

// valued is the end of a call that returns a value.
func valued[T any](v T, err error) (func(context.Context) (string, error), error) {
	return func(ctx context.Context) (string, error) {
		v, err := xdpfab.Settle(ctx, v, err)
		return fmt.Sprint(v), err
	}, err
}

// stored is the end of a call that stores values, unless that is nil.
func stored[T any](values []T, err error) (func(context.Context) (string, error), error) {
	return func(ctx context.Context) (string, error) {
		err := xdpfab.SettleError(ctx, err)
		return fmt.Sprint(values), err
	}, err
}

type settles = func(context.Context) (string, error)

var unsettledCalls = []unsettledCall{
	{"Add", func(ctx context.Context, h handles) (settles, error) { return valued(h.word.Add(ctx, 2)) }, "42", 42},
	{"Load", func(ctx context.Context, h handles) (settles, error) { return valued(h.word.Load(ctx)) }, "40", 40},
	{"Swap", func(ctx context.Context, h handles) (settles, error) { return valued(h.word.Swap(ctx, 7)) }, "40", 7},
	{"Fetch", func(ctx context.Context, h handles) (settles, error) {
		return valued(h.word.Fetch(ctx, atomic.Prod, 3))
	}, "40", 120},
	{"CompareAndSwap", func(ctx context.Context, h handles) (settles, error) {
		return valued(h.word.CompareAndSwap(ctx, 40, 8))
	}, "true", 8},
	{"CompareAndSwap of another value", func(ctx context.Context, h handles) (settles, error) {
		return valued(h.word.CompareAndSwap(ctx, 41, 8))
	}, "false", 40},
	{"CompareAndExchange", func(ctx context.Context, h handles) (settles, error) {
		was, _, err := h.word.CompareAndExchange(ctx, 40, 9)
		return valued(was, err)
	}, "40", 9},
	{"Wait for StartAdd", func(ctx context.Context, h handles) (settles, error) {
		return valued(h.word.StartAdd(ctx, 5).Wait(ctx))
	}, "45", 45},
	{"Wait for StartCompare", func(ctx context.Context, h handles) (settles, error) {
		return valued(h.word.StartCompare(ctx, atomic.Cswap, 40, 5).Wait(ctx))
	}, "40", 5},
	{"AddAtMost", func(ctx context.Context, h handles) (settles, error) {
		return valued(xdpfab.AddAtMost(ctx, h.word, 2, 42))
	}, "true", 42},
	{"SubAtLeast of too much", func(ctx context.Context, h handles) (settles, error) {
		return valued(xdpfab.SubAtLeast(ctx, h.word, 41, 0))
	}, "false", 40},
	{"AddField", func(ctx context.Context, h handles) (settles, error) {
		return valued(xdpfab.AddField(ctx, h.word, 3, 3, 4))
	}, "5", 8},
	{"ClearBit", func(ctx context.Context, h handles) (settles, error) {
		return valued(xdpfab.ClearBit(ctx, h.word, 5))
	}, "true", 8},
	{"Store", func(ctx context.Context, h handles) (settles, error) { return stored[int](nil, h.word.Store(ctx, 6)) }, "[]", 6},
	{"Peer.Write", func(ctx context.Context, h handles) (settles, error) {
		return stored[int](nil, h.peer.Write(ctx, h.region, 8*h.at[0], []byte{1}))
	}, "[]", 1},
	{"Peer.WriteSignal", func(ctx context.Context, h handles) (settles, error) { // 1, and then 5 more
		return stored[int](nil, h.peer.WriteSignal(ctx, h.region, 8*h.at[0], []byte{1},
			xdpfab.Signal{Region: h.region, Index: h.at[0], Op: atomic.Sum, Value: 5}))
	}, "[]", 6},
	{"vector Add", func(ctx context.Context, h handles) (settles, error) {
		sums, deltas := make([]uint64, 1), []uint64{3}
		settle, err := stored(sums, h.vector.Add(ctx, h.at, deltas, sums))
		deltas[0] = 1000 // is the caller's again
		return settle, err
	}, "[43]", 43},
	{"vector Add without results", func(ctx context.Context, h handles) (settles, error) {
		return stored[int](nil, h.vector.Add(ctx, h.at, []uint64{3}, nil))
	}, "[]", 43},
	{"vector Fetch", func(ctx context.Context, h handles) (settles, error) {
		olds := make([]uint64, 1)
		return stored(olds, h.vector.Fetch(ctx, atomic.Band, h.at, []uint64{8}, olds))
	}, "[40]", 8},
	{"vector LoadRange", func(ctx context.Context, h handles) (settles, error) {
		values := make([]uint64, 1)
		return stored(values, h.vector.LoadRange(ctx, h.at[0], values))
	}, "[40]", 40},
	{"vector CompareAndExchange", func(ctx context.Context, h handles) (settles, error) {
		was := make([]uint64, 1)
		return stored(was, h.vector.CompareAndExchange(ctx, h.at, []uint64{40}, []uint64{4}, was))
	}, "[40]", 4},
	{"vector CompareAndSwap", func(ctx context.Context, h handles) (settles, error) {
		swapped, olds := make([]bool, 1), []uint64{40}
		settle, err := stored(swapped, h.vector.CompareAndSwap(ctx, h.at, olds, []uint64{3}, swapped))
		olds[0] = 0
		return settle, err
	}, "[true]", 3},
}

// onForty returns handles on a word that holds 40.
func onForty(t *testing.T, f *fixture, p *xdpfab.Peer, index uint64) handles {
	t.Helper()
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	v := xdpfab.VectorAt[uint64](p, r)
	if err := v.At(index).Store(ctx(t), 40); err != nil {
		t.Fatal(err)
	}
	return handles{p, r, v.At(index), v, []uint64{index}}
}

// executed is how many records a domain has executed.
func executed(t *testing.T, d *xdpfab.Domain) uint64 {
	t.Helper()
	stats, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return stats["ops_executed"]
}

// A call whose context ends while answers are lost settles to what it would have
// returned. The wait for that can be ended, and begun again.
func TestSettleAfterDeadline(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	progressModes(t, func(t *testing.T, a xdpfab.DomainAttr) {
		f := setUp(t, a, 64)
		p, err := f.client.Dial(ctx(t), f.server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range unsettledCalls {
			h := onForty(t, f, p, uint64(i))
			if err := f.server.SetFaults(xdpfab.Faults{Loss: 1}); err != nil {
				t.Fatal(err)
			}
			before := executed(t, f.server)
			short, leave := context.WithCancel(ctx(t))
			var settle settles
			failure := make(chan error)
			go func() {
				var err error
				settle, err = c.begin(short, h)
				failure <- err
			}()
			testnet.Eventually(t, c.name+" has run", func() bool { return executed(t, f.server) > before })
			leave()
			if err := <-failure; !errors.Is(err, xdpfab.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
				t.Errorf("%s without an answer: %v", c.name, err)
			}
			if _, err := settle(over); !errors.Is(err, xdpfab.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
				t.Errorf("%s, while nobody can know: %v", c.name, err)
			}
			if err := f.server.SetFaults(xdpfab.Faults{}); err != nil {
				t.Fatal(err)
			}
			got, err := settle(ctx(t))
			if word := binary.LittleEndian.Uint64(f.mem[8*i:]); got != c.want || err != nil || word != c.word {
				t.Errorf("%s: %s, %v, and the word is %d; want %s and %d", c.name, got, err, word, c.want, c.word)
			}
		}
	})
}

// A read whose answer was lost settles as the call would have ended: the bytes, the
// values or the struct are there.
func TestSettleRead(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	copy(f.mem, "abcdefgh")
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	var (
		b     [8]byte
		words [1]uint64
	)
	lost := func(read func(context.Context) error) error {
		t.Helper()
		if err := f.server.SetFaults(xdpfab.Faults{Loss: 1}); err != nil {
			t.Fatal(err)
		}
		before := executed(t, f.server)
		short, leave := context.WithCancel(ctx(t))
		failure := make(chan error)
		go func() { failure <- read(short) }()
		testnet.Eventually(t, "the read has run", func() bool { return executed(t, f.server) > before })
		leave()
		err := <-failure
		if !errors.Is(err, xdpfab.ErrOutcomeUnknown) {
			t.Errorf("a read without an answer: %v", err)
		}
		if err := f.server.SetFaults(xdpfab.Faults{}); err != nil {
			t.Fatal(err)
		}
		return err
	}
	err = lost(func(c context.Context) error { return p.Read(c, r, 0, b[:]) })
	if err := xdpfab.SettleError(ctx(t), err); err != nil || string(b[:]) != "abcdefgh" {
		t.Errorf("read %q, %v", b, err)
	}
	err = lost(func(c context.Context) error { return xdpfab.ReadSlice(c, p, r, 0, words[:]) })
	if err := xdpfab.SettleError(ctx(t), err); err != nil || words[0] != binary.LittleEndian.Uint64(f.mem) {
		t.Errorf("read %#x, %v", words, err)
	}
	var v struct{ A, B uint32 }
	err = lost(func(c context.Context) (err error) {
		v, err = xdpfab.ReadStruct[struct{ A, B uint32 }](c, p, r, 0)
		return err
	})
	if v, err = xdpfab.Settle(ctx(t), v, err); err != nil || v.A != binary.LittleEndian.Uint32(f.mem) {
		t.Errorf("read %+v, %v", v, err)
	}
}

// A context that has ended the call leaves no time to wait for its outcome: the error is
// the same.
func TestSettleBySameContext(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	h := onForty(t, f, p, 0)
	own, err := f.region.Uint64(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.server.SetFaults(xdpfab.Faults{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	c, end := context.WithCancelCause(ctx(t))
	cause := errors.New("the lease is lost")
	go func() {
		for own.Load() == 40 && c.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		end(cause)
	}()
	n, err := h.word.Add(c, 2)
	_, settled := xdpfab.Settle(c, n, err)
	if !errors.Is(settled, cause) || !errors.Is(settled, xdpfab.ErrOutcomeUnknown) || settled.Error() != err.Error() ||
		strings.Count(err.Error(), cause.Error()) != 1 {
		t.Errorf("%v; want %v as it was", settled, err)
	}
}

// A partition outlasts the give-up time. When it heals, calls whose requests were lost
// settle to ErrNotExecuted, and those whose answers were lost to their results.
func TestSettleAfterPartition(t *testing.T) {
	for _, ran := range []bool{false, true} {
		t.Run(fmt.Sprintf("ran %t", ran), func(t *testing.T) {
			t.Parallel()
			f := setUp(t, xdpfab.DomainAttr{GiveUp: 2 * time.Second}, 64)
			p, err := f.client.Dial(ctx(t), f.server.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			h := onForty(t, f, p, 0)
			lost := f.client
			if ran {
				lost = f.server
			}
			if err := lost.SetFaults(xdpfab.Faults{Loss: 1}); err != nil {
				t.Fatal(err)
			}
			sums := make([]uint64, 2)
			more := make(chan error)
			go func() { more <- h.vector.AddRange(ctx(t), 1, []uint64{3, 4}, sums) }()
			n, err := h.word.Add(ctx(t), 2)
			err2 := <-more
			for _, err := range []error{err, err2} {
				if !errors.Is(err, xdpfab.ErrOutcomeUnknown) || !errors.Is(err, xdpfab.ErrPeerSilent) {
					t.Errorf("in a partition: %v", err)
				}
			}
			if err := lost.SetFaults(xdpfab.Faults{}); err != nil {
				t.Fatal(err)
			}
			n, err = xdpfab.Settle(ctx(t), n, err)
			err2 = xdpfab.SettleError(ctx(t), err2)
			switch {
			case ran && (n != 42 || err != nil || err2 != nil || sums[0] != 3 || sums[1] != 4):
				t.Errorf("%d, %v, and %d, %v; want 42 and [3 4]", n, err, sums, err2)
			case !ran:
				for _, err := range []error{err, err2} {
					if !errors.Is(err, xdpfab.ErrNotExecuted) || errors.Is(err, xdpfab.ErrOutcomeUnknown) {
						t.Errorf("after a partition: %v, want ErrNotExecuted", err)
					}
					checkText(t, "settled", err, ": not executed: the call ended before this was known: peer does not answer",
						xdpfab.ErrPeerSilent)
				}
			}
		})
	}
}

// What is known already comes back as it is, and what cannot be settled says why.
func TestSettleKnown(t *testing.T) {
	for _, err := range []error{nil, xdpfab.ErrNotExecuted, xdpfab.ErrPeerRestarted, context.Canceled} {
		if v, got := xdpfab.Settle(ctx(t), 7, err); v != 7 || got != err {
			t.Errorf("%v: %d, %v", err, v, got)
		}
		if got := xdpfab.SettleError(ctx(t), err); got != err {
			t.Errorf("%v: %v", err, got)
		}
	}
	lone := &xdpfab.OpError{Op: "send", Peer: "b", Certainty: xdpfab.ErrOutcomeUnknown, Cause: xdpfab.ErrPeerSilent}
	if v, err := xdpfab.Settle(ctx(t), 7, error(lone)); v != 7 || !errors.Is(err, lone) || err == error(lone) {
		t.Errorf("an error without a value: %d, %v", v, err)
	}
	if err := xdpfab.SettleError(ctx(t), lone); err != error(lone) {
		t.Errorf("what nobody knows: %v", err)
	}
}

// A value of another type than the call's is refused, and nothing is lost by that.
func TestSettleAnotherType(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	_, w := dialWord[uint64](t, f)
	if err := f.server.SetFaults(xdpfab.Faults{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	before := executed(t, f.server)
	pending := w.StartAdd(ctx(t), 3)
	testnet.Eventually(t, "it has run", func() bool { return executed(t, f.server) > before })
	over, cancel := context.WithCancel(ctx(t))
	cancel()
	n, err := pending.Wait(over)
	if err := f.server.SetFaults(xdpfab.Faults{}); err != nil {
		t.Fatal(err)
	}
	if v, err := xdpfab.Settle(ctx(t), "a text", err); v != "a text" || !errors.Is(err, xdpfab.ErrOutcomeUnknown) {
		t.Errorf("%q, %v", v, err)
	}
	if n, err = xdpfab.Settle(ctx(t), n, err); n != 3 || err != nil {
		t.Errorf("%d, %v, want 3", n, err)
	}
}
