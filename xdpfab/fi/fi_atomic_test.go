// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// AtomicValid and QueryAtomic say what posting does: for each form, operation and
// datatype either all accept it, and it runs, or all refuse it.
func TestValidTellsTheTruth(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	post := map[atomic.Func]func(*fi.Msg, fi.OpFlags) error{
		atomic.Base: f.ep.Atomic, atomic.Fetch: f.ep.FetchAtomic, atomic.Compare: f.ep.CompareAtomic,
	}
	accepted := 0
	for form := range post {
		for op := range atomic.Op(atomic.NumOps + 1) {
			for dt := range atomic.Datatype(atomic.NumDatatypes + 1) {
				count, err := f.ep.AtomicValid(form, dt, op)
				attr, err2 := f.client.QueryAtomic(form, dt, op, 0)
				m := fi.Msg{Buf: make([]byte, dt.Size()), Count: 1, Dest: f.dest, Key: 1, Datatype: dt, Op: op}
				if form != atomic.Base {
					m.Result = make([]byte, dt.Size())
				}
				if form == atomic.Compare {
					m.Compare = make([]byte, dt.Size())
				}
				err3 := post[form](&m, 0)
				if !atomic.Valid(form, op, dt) {
					for _, err := range []error{err, err2, err3} {
						if !errors.Is(err, fi.ErrOpNotSupported) {
							t.Errorf("%v %v on %v: %v, want ErrOpNotSupported", form, op, dt, err)
						}
					}
					continue
				}
				if err := errors.Join(err, err2, err3); err != nil {
					t.Fatal(err)
				}
				if attr.Count != count || attr.Size != dt.Size() || attr.Align != dt.Align() || count != math.MaxUint32 {
					t.Errorf("%v %v on %v: %+v and %d elements", form, op, dt, attr, count)
				}
				if c := take(t, f); c.Err != nil {
					t.Error(c.Err)
				}
				accepted++
			}
		}
	}
	if accepted != 224+244+148 {
		t.Errorf("%d combinations are supported, want 224 base, 244 fetch, 148 compare", accepted)
	}
	if _, err := f.client.QueryAtomic(3, atomic.Uint64, atomic.Sum, 0); !errors.Is(err, fi.ErrOpNotSupported) {
		t.Errorf("a fourth form: %v, want ErrOpNotSupported", err)
	}
}

// byHand is a fixture in which neither side moves unless told to, with a session open.
func byHand(t *testing.T) *fixture {
	manual := fi.DomainAttr{Progress: fi.ProgressManual}
	f := setUpBoth(t, manual, manual, 64)
	f.add(t, 0, 0)
	f.settle(t, 1)
	return f
}

// add posts an addition of 1 to a word.
func (f *fixture) add(t *testing.T, word uint64, flags fi.OpFlags) {
	t.Helper()
	m := fi.Msg{Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Count: 1, Dest: f.dest, Offset: 8 * word, Key: 1,
		Datatype: atomic.Uint64, Op: atomic.Sum, Context: word}
	if err := f.ep.Atomic(&m, flags); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) word(i int) uint64 { return binary.LittleEndian.Uint64(f.mem[8*i:]) }

// send lets the client do whatever it can without an answer.
func (f *fixture) send() {
	for range 10 {
		f.client.Progress()
	}
}

// serve moves only the server, until a condition holds: over sockets, a frame may arrive
// later than it was sent. The client learns nothing meanwhile.
func (f *fixture) serve(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(testnet.Patience); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", testnet.Patience, what)
		}
		f.server.Progress()
	}
}

// settle moves both sides until n operations have succeeded.
func (f *fixture) settle(t *testing.T, n int) {
	t.Helper()
	var c [8]fi.Completion
	for end := ctx(t); n > 0; {
		f.client.Progress()
		f.server.Progress()
		got, err := f.cq.Read(c[:])
		if n -= got; err != nil || end.Err() != nil {
			t.Fatalf("%d completions are missing: %v", n, errors.Join(err, end.Err()))
		}
	}
}

// A fenced operation, and those after it, are not even sent before every earlier one
// has completed.
func TestFlagFence(t *testing.T) {
	for _, fence := range []bool{false, true} {
		f := byHand(t)
		f.add(t, 1, 0)
		if fence {
			f.add(t, 2, fi.FlagFence)
		} else {
			f.add(t, 2, 0)
		}
		f.add(t, 3, 0)
		f.send()
		f.serve(t, "what need not wait has run", func() bool { return f.word(1) == 1 && (fence || f.word(2) == 1 && f.word(3) == 1) })
		if fence && (f.word(2) != 0 || f.word(3) != 0) {
			t.Errorf("%d %d ran before the first was known to have", f.word(2), f.word(3))
		}
		f.settle(t, 3)
		if f.word(1) != 1 || f.word(2) != 1 || f.word(3) != 1 {
			t.Errorf("fence %v: %d %d %d ran in the end", fence, f.word(1), f.word(2), f.word(3))
		}
	}
}

// The completion comes after the operation has been applied, with FlagDeliveryComplete
// and without.
func TestFlagDeliveryComplete(t *testing.T) {
	for _, flags := range []fi.OpFlags{0, fi.FlagDeliveryComplete} {
		f := byHand(t)
		f.add(t, 1, flags)
		f.send()
		var c [1]fi.Completion
		if n, err := f.cq.Read(c[:]); n != 0 || err != nil || f.word(1) != 0 {
			t.Errorf("flags %#x: %d completions, %v, before the target has done anything", flags, n, err)
		}
		f.serve(t, "applied", func() bool { return f.word(1) == 1 })
		f.settle(t, 1)
	}
}

// Operands of an injected operation are free when the call returns.
func TestFlagInject(t *testing.T) {
	f := byHand(t)
	buf, compare, result := []byte{5, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 8), make([]byte, 8)
	m := fi.Msg{Buf: buf, Compare: compare, Result: result, Count: 1, Dest: f.dest, Offset: 8, Key: 1, Datatype: atomic.Uint64, Op: atomic.Cswap}
	if err := f.ep.CompareAtomic(&m, fi.FlagInject); err != nil {
		t.Fatal(err)
	}
	copy(buf, "overwritten")
	copy(compare, "overwritten")
	f.settle(t, 1)
	if f.word(1) != 5 {
		t.Errorf("swapped in %#x, want 5", f.word(1))
	}
	m.Buf, m.Compare, m.Result, m.Count = make([]byte, 48), make([]byte, 48), make([]byte, 48), 6
	if err := f.ep.CompareAtomic(&m, fi.FlagInject); !errors.Is(err, fi.ErrTooBig) {
		t.Errorf("%d bytes injected: %v, want ErrTooBig", 96, err)
	}
}

// All flags go together.
func TestFlagsTogether(t *testing.T) {
	f := byHand(t)
	f.add(t, 1, fi.FlagFence|fi.FlagInject|fi.FlagMore|fi.FlagDeliveryComplete)
	f.settle(t, 1)
	if f.word(1) != 1 {
		t.Error("not applied")
	}
}

// Completions tell the direction.
func TestCompletionFlags(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	b, r, c := make([]byte, 8), make([]byte, 8), make([]byte, 8)
	if err := errors.Join(
		f.ep.Atomic(&fi.Msg{Buf: b, Count: 1, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum, Context: "write"}, 0),
		f.ep.FetchAtomic(&fi.Msg{Buf: b, Count: 1, Result: r, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum, Context: "read"}, 0),
		f.ep.CompareAtomic(&fi.Msg{Buf: b, Count: 1, Compare: c, Result: r, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Cswap, Context: "read"}, 0),
	); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got := take(t, f)
		want := fi.CompletionAtomic | fi.CompletionRead
		if got.Context == any("write") {
			want = fi.CompletionAtomic | fi.CompletionWrite
		}
		if got.Err != nil || got.Flags != want || got.Bytes != 8 {
			t.Errorf("%+v, want flags %v and 8 bytes", got, want)
		}
	}
}

// Completions of endpoints that share a queue tell where they were posted and which peer
// they are from, good and bad ones.
func TestCompletionsTellEndpoints(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: 5})
	if err != nil {
		t.Fatal(err)
	}
	other, err := f.av.Insert(ctx(t), f.server.Name(0))
	if err := errors.Join(err, ep.Bind(f.av, 0), ep.Bind(f.cq, 0), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ep   *fi.Endpoint
		dest fi.Address
		key  uint64
		want error
	}{
		{ep, f.dest, 1, nil}, {f.ep, other, 1, nil}, {ep, other, 99, fi.ErrNoKey}, {f.ep, f.dest, 99, fi.ErrNoKey}, {f.ep, f.dest, 1, nil},
	} {
		if err := c.ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Dest: c.dest, Key: c.key, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
			t.Fatal(err)
		}
		if got := take(t, f); got.Endpoint != c.ep || got.Source != c.dest || !errors.Is(got.Err, c.want) {
			t.Errorf("endpoint %d, address %d: %+v, want %v", c.ep.Number(), c.dest, got, c.want)
		}
	}
}
