// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// scribe posts what it is told, and keeps a log of what becomes of it.
type scribe struct {
	t          *testing.T
	words      bool // posts on one word take the way for these
	one, other *xdpfab.Domain
	ep, alias  *fi.Endpoint
	cq         *fi.CompletionQueue
	cntr       [2]*fi.Counter
	av         *fi.AddressVector
	names      []string
	dests      []fi.Address
	of         []int  // by index of dests: the name, whose operations have words of their own
	accepted   uint64 // operations
	results    [][]byte
	mem        []byte
	log        []string
}

const scribeSize = 64 // operations in flight

func newScribe(t *testing.T, words, selective, shared bool, threading fi.Threading) *scribe {
	t.Helper()
	one, other, err := xdpfab.Pipe(fi.DomainAttr{Progress: fi.ProgressManual, Threading: threading})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = one.CloseAll(), other.CloseAll() })
	s := &scribe{t: t, words: words, one: one, other: other}
	memory, _ := mr.Alloc(4096, mr.AllocOptions{})
	s.mem = memory.Bytes()
	for key, access := range map[uint64]mr.Access{1: mr.RemoteRead | mr.RemoteWrite, 2: mr.RemoteRead} {
		if _, err := other.Register(memory, mr.Options{Key: &key, Access: access}); err != nil {
			t.Fatal(err)
		}
	}
	for number := range uint16(2) {
		served, _ := other.NewEndpoint(fi.EndpointAttr{Number: int(number)})
		if err := served.Enable(); err != nil {
			t.Fatal(err)
		}
		s.names = append(s.names, other.Name(number))
	}
	s.av, _ = one.NewAddressVector()
	s.cq, _ = one.NewCompletionQueue(fi.CQAttr{Size: scribeSize})
	s.ep, _ = one.NewEndpoint(fi.EndpointAttr{Number: 5, Size: scribeSize})
	flags := fi.BindFlags(0)
	if selective {
		flags = fi.BindSelective
	}
	errs := []error{s.ep.Bind(s.av, 0), s.ep.Bind(s.cq, flags)}
	for i, of := range []fi.BindFlags{fi.BindRead, fi.BindWrite} {
		s.cntr[i], _ = one.NewCounter(fi.CounterAttr{})
		errs = append(errs, s.ep.Bind(s.cntr[i], of))
	}
	if shared {
		x, err := one.NewSharedTransmit(fi.SharedTransmitAttr{Size: scribeSize / 2})
		errs = append(errs, err, s.ep.Bind(x, 0))
	}
	if err := errors.Join(append(errs, s.ep.Enable())...); err != nil {
		t.Fatal(err)
	}
	if s.alias, err = s.ep.Alias(0); err != nil {
		t.Fatal(err)
	}
	for i := range s.names {
		s.insert(i)
	}
	return s
}

func (s *scribe) insert(i int) {
	a, err := s.av.Insert(s.t.Context(), s.names[i])
	if err != nil {
		s.t.Fatal(err)
	}
	s.dests, s.of = append(s.dests, a), append(s.of, i)
}

func (s *scribe) write(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// action is a step of a script.
type action struct {
	do            string
	m             fi.Msg
	alias         bool
	result        int // bytes
	flags         fi.OpFlags
	at, dest      int
	operand       uint64
	form          atomic.Func
	inject, taken bool // taken: another goroutine has the turn
}

func (s *scribe) act(a *action) {
	switch a.do {
	case "post":
		s.post(a)
	case "insert":
		s.insert(a.at)
	case "remove":
		s.write("remove: %v", s.av.Remove(s.dests[a.dest%len(s.dests)]) == nil)
	case "step":
		s.one.Progress()
	case "read":
		s.read()
	case "end alias":
		s.write("%v", s.alias.Close())
	}
}

// post posts an operation. Pieces, though there are none, keep it from being a word.
func (s *scribe) post(a *action) {
	m := a.m
	to := a.dest % len(s.dests)
	m.Dest, m.Context = s.dests[to], len(s.results)
	m.Offset += 64 * uint64(s.of[to])
	m.Buf = binary.LittleEndian.AppendUint64(nil, a.operand)[:m.Datatype.Size()]
	if m.Op == atomic.Read {
		m.Buf = nil
	}
	if !s.words {
		m.Pieces = &fi.Pieces{}
	}
	result := make([]byte, a.result)
	if a.form == atomic.Fetch {
		m.Result = result
	}
	s.results = append(s.results, result)
	ep, held := s.ep, false
	if a.alias {
		ep = s.alias
	}
	if a.taken {
		if held = ep.Stepper().TryHold(); !held {
			s.t.Fatal("the turn is not free")
		}
	}
	var err error
	switch {
	case a.form == atomic.Fetch:
		err = ep.FetchAtomic(&m, a.flags)
	case a.inject:
		err = ep.InjectAtomic(&m)
	default:
		err = ep.Atomic(&m, a.flags)
	}
	if held {
		ep.Stepper().Release()
	}
	if err == nil {
		s.accepted++
	}
	s.write("post %d: %v", m.Context, kindOf(err))
}

// kindOf is an error without what differs between domains.
func kindOf(err error) string {
	if err == nil {
		return "accepted"
	}
	var oe *fi.OpError
	if errors.As(err, &oe) {
		return fmt.Sprintf("%v, %d", oe.Certainty, oe.Errno())
	}
	for _, kind := range []error{fi.ErrAgain, fi.ErrUnknownPeer, fi.ErrClosed, fi.ErrOpNotSupported, fi.ErrLength, fi.ErrBadFlags} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return "other: " + err.Error()
}

// read waits until all that was accepted is complete, and writes down how it ended.
func (s *scribe) read() {
	testnet.Eventually(s.t, "all operations have ended", func() bool {
		s.other.Progress()
		return s.cntr[0].Read()+s.cntr[0].ReadErr()+s.cntr[1].Read()+s.cntr[1].ReadErr() == s.accepted
	})
	first := len(s.log)
	for {
		var c [1]fi.Completion
		n, err := s.cq.Read(c[:])
		if errors.Is(err, fi.ErrErrorPending) {
			c[0], _ = s.cq.ReadErr()
		} else if n == 0 {
			break
		}
		i := c[0].Context.(int)
		s.write("completion %4d: %s, %v, %d bytes from %d, result %x", i, kindOf(c[0].Err), c[0].Flags, c[0].Bytes, c[0].Source, s.results[i])
	}
	slices.Sort(s.log[first:]) // operations to different peers may end in any order
}

// end ends the log with what is left.
func (s *scribe) end() []string {
	s.read()
	if n := s.cq.Taken(); n != 0 {
		s.t.Errorf("%d places of the queue are taken", n)
	}
	s.write("%d %d, %d %d; %x", s.cntr[0].Read(), s.cntr[0].ReadErr(), s.cntr[1].Read(), s.cntr[1].ReadErr(), s.mem[:128])
	return s.log
}

// script draws the steps. Most posts are like those before them but for offset and
// operand.
func script(rng *rand.Rand) (all []action) {
	last := action{do: "post", form: atomic.Fetch, result: 8, operand: 1, flags: fi.FlagMore}
	last.m.Op, last.m.Datatype, last.m.Key, last.m.Count = atomic.Sum, atomic.Uint64, 1, 1
	rare := func(n int) bool { return rng.IntN(n) == 0 }
	aliased := false
	for range 400 {
		a := last
		switch {
		case rare(40):
			a = action{do: "insert", at: rng.IntN(2)}
		case rare(80):
			a = action{do: "remove", dest: rng.IntN(100)}
		case rare(30):
			a = action{do: "step"}
		case rare(20):
			a = action{do: "read"}
		case rare(300) && !aliased:
			a, aliased = action{do: "end alias"}, true
		default:
			if rare(8) {
				a.form = []atomic.Func{atomic.Base, atomic.Fetch}[rng.IntN(2)]
				a.m.Op = []atomic.Op{atomic.Sum, atomic.Bor, atomic.Write, atomic.Read}[rng.IntN(4)]
				a.m.Datatype = []atomic.Datatype{atomic.Uint64, atomic.Uint64, atomic.Int64, atomic.Uint32, atomic.Double}[rng.IntN(5)]
			}
			if rare(10) {
				a.m.Key = []uint64{1, 1, 1, 2, 99}[rng.IntN(5)]
			}
			if rare(10) {
				a.m.Incarnation = []uint32{0, 0, 12345}[rng.IntN(3)]
			}
			if rare(10) {
				a.dest = rng.IntN(100)
			}
			if rare(10) {
				a.flags = []fi.OpFlags{fi.FlagMore, 0, fi.FlagCompletion, fi.FlagFence, fi.FlagInject, fi.FlagMore | fi.FlagDefaults}[rng.IntN(6)]
			}
			if rare(10) {
				a.operand = uint64(rng.IntN(3))
			}
			a.m.Offset, a.result = uint64(8*rng.IntN(8)), a.m.Datatype.Size()
			if last = a; rare(10) {
				a.inject = true
			}
			a.alias, a.taken = rare(10), rare(10)
		}
		all = append(all, a)
	}
	return all
}

// A post on one word ends like one that takes the general way, whatever was posted before
// it and whatever has happened since: to peers, places, the turn, queues and handles.
func TestWordsEndLikeOthers(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(reduced(20, 10)) {
		rng := rand.New(rand.NewPCG(seed, 4))
		selective, shared, threading := rng.IntN(2) == 0, rng.IntN(3) == 0, []fi.Threading{fi.ThreadSafe, fi.ThreadDomain}[rng.IntN(2)]
		steps := script(rng)
		var logs [2][]string
		for i := range logs {
			s := newScribe(t, i == 0, selective, shared, threading)
			for j := range steps {
				s.act(&steps[j])
			}
			logs[i] = s.end()
			_, _ = s.one.CloseAll(), s.other.CloseAll()
		}
		if !slices.Equal(logs[0], logs[1]) {
			for i := range min(len(logs[0]), len(logs[1])) {
				if logs[0][i] != logs[1][i] {
					t.Fatalf("seed %d, line %d: %s\nwithout words: %s", seed, i, logs[0][i], logs[1][i])
				}
			}
			t.Fatalf("seed %d: %d lines, without words %d", seed, len(logs[0]), len(logs[1]))
		}
		for _, line := range logs[0] {
			var n int
			if _, err := fmt.Sscanf(line, "post %d:", &n); err == nil {
				kinds[line[len(fmt.Sprintf("post %d:", n)):]]++
			}
		}
	}
	t.Log(kinds)
}
