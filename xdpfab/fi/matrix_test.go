// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Every operation on every datatype, in every form and by every kind of call, does to a
// peer's memory, over a real interface, what it does to local memory: on both
// encapsulations and in both modes of progress. With -short each of these three has a
// third of the combinations.
func TestEveryKindOfCall(t *testing.T) {
	for name, c := range map[string]struct {
		third int
		attr  fi.DomainAttr
		addr  func(m *matrix) string
	}{
		"ethernet":         {0, fi.DomainAttr{}, func(m *matrix) string { return m.server.Name(0) }},
		"ethernet, manual": {1, fi.DomainAttr{Progress: fi.ProgressManual}, func(m *matrix) string { return m.server.Name(0) }},
		"udp":              {2, fi.DomainAttr{}, func(m *matrix) string { return m.ip }},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMatrix(t, c.attr, c.addr)
			valid := 0
			for op := range atomic.Op(atomic.NumOps) {
				for dt := range atomic.Datatype(atomic.NumDatatypes) {
					for form := range atomic.Func(atomic.NumFuncs) {
						if !atomic.Valid(form, op, dt) {
							continue
						}
						if !testing.Short() || valid%3 == c.third {
							m.tryAll(t, form, op, dt)
						}
						valid++
					}
				}
			}
			if valid != 224+244+148 {
				t.Errorf("there are %d combinations, want 224 base, 244 fetch, 148 compare", valid)
			}
		})
	}
}

// matrix is a pair of nodes of which one serves two regions.
type matrix struct {
	server *xdpfab.Domain
	ip     string
	mem    [2][]byte // of the regions with keys 1 and 2
	alike  [2][]byte // as long, and aligned as well
	ep     *fi.Endpoint
	cq     *fi.CompletionQueue
	dest   fi.Address
	rng    *rand.Rand
}

func newMatrix(t *testing.T, client fi.DomainAttr, addr func(m *matrix) string) *matrix {
	a, b, pair := onVeth(t, 1, client, fi.DomainAttr{EthernetOnly: client.EthernetOnly})
	m := &matrix{server: b, ip: pair.B.IP4.String(), rng: rand.New(rand.NewPCG(3, 4))}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range m.mem {
		mem, err := mr.Alloc(256, mr.AllocOptions{})
		must(err)
		key := uint64(1 + i)
		_, err = b.Register(mem, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite})
		must(err)
		m.mem[i] = mem.Bytes()
		alike, err := mr.Alloc(len(m.mem[i]), mr.AllocOptions{})
		must(err)
		t.Cleanup(func() { _ = alike.Close() })
		m.alike[i] = alike.Bytes()
	}
	av, err := a.NewAddressVector()
	must(err)
	m.cq, err = a.NewCompletionQueue(fi.CQAttr{})
	must(err)
	m.ep, err = a.NewEndpoint(fi.EndpointAttr{Number: 5})
	must(err)
	must(errors.Join(m.ep.Bind(av, 0), m.ep.Bind(m.cq, 0), m.ep.Enable()))
	m.dest, err = av.Insert(ctx(t), addr(m))
	must(err)
	return m
}

// tryAll tries an operation by each kind of call.
func (m *matrix) tryAll(t *testing.T, form atomic.Func, op atomic.Op, dt atomic.Datatype) {
	size := dt.Size()
	for kind, change := range map[string]func(msg *fi.Msg){
		"one element": func(*fi.Msg) {},
		"an array":    func(msg *fi.Msg) { msg.Count = 3 },
		"pieces":      func(msg *fi.Msg) { msg.Count = 3 },
		"places": func(msg *fi.Msg) {
			msg.Key, msg.Offset, msg.Count = 0, 0, 3
			msg.RMA = []mr.Extent{{Key: 2, Offset: uint64(size), Count: 1}, {Key: 1, Offset: 3 * uint64(size), Count: 2}}
		},
		"injected": func(*fi.Msg) {},
	} {
		if kind == "injected" && form != atomic.Base {
			continue
		}
		msg := fi.Msg{Dest: m.dest, Key: 1, Offset: 2 * uint64(size), Count: 1, Datatype: dt, Op: op}
		change(&msg)
		msg.Buf = random(m.rng, msg.Count*size)
		if form != atomic.Base {
			msg.Result = make([]byte, msg.Count*size)
		}
		if form == atomic.Compare {
			msg.Compare = random(m.rng, msg.Count*size)
		}
		for i := range m.mem {
			copy(m.mem[i], random(m.rng, len(m.mem[i])))
		}
		memory, result := m.locally(t, form, &msg)
		m.run(t, form, &msg, kind)
		if !bytes.Equal(m.mem[0], memory[0]) || !bytes.Equal(m.mem[1], memory[1]) || !bytes.Equal(msg.Result, result) {
			t.Fatalf("%v %v on %v, %s: memory %x and %x, result %x, want %x and %x, %x", form, op, dt, kind,
				m.mem[0], m.mem[1], msg.Result, memory[0], memory[1], result)
		}
	}
}

// locally returns what the operation makes of the memory, and the values that it returns.
func (m *matrix) locally(t *testing.T, form atomic.Func, msg *fi.Msg) (memory [2][]byte, result []byte) {
	t.Helper()
	for i := range memory {
		memory[i] = m.alike[i]
		copy(memory[i], m.mem[i])
	}
	places := msg.RMA
	if places == nil {
		places = []mr.Extent{{Key: msg.Key, Offset: msg.Offset, Count: uint32(msg.Count)}}
	}
	result = make([]byte, len(msg.Result))
	size, at := msg.Datatype.Size(), 0
	part := func(b []byte, n int) []byte {
		if len(b) == 0 {
			return nil
		}
		return b[at : at+n]
	}
	for _, p := range places {
		n := int(p.Count) * size
		target := memory[p.Key-1][p.Offset:][:n]
		if err := atomic.Apply(form, msg.Op, msg.Datatype, target, part(msg.Buf, n), part(msg.Compare, n), part(result, n), int(p.Count)); err != nil {
			t.Fatal(err)
		}
		at += n
	}
	if form == atomic.Base {
		result = nil
	}
	return memory, result
}

// run posts the operation and waits for its completion.
func (m *matrix) run(t *testing.T, form atomic.Func, msg *fi.Msg, kind string) {
	t.Helper()
	given, whole := *msg, msg.Result
	if kind == "pieces" {
		size := msg.Datatype.Size()
		given.Pieces = &fi.Pieces{Buf: divide(m.rng, msg.Buf, size), Compare: divide(m.rng, msg.Compare, size), Result: divide(m.rng, whole, size)}
		given.Buf, given.Compare, given.Result = nil, nil, nil
	}
	var err error
	switch {
	case kind == "injected":
		err = m.ep.InjectAtomic(&given)
		clear(given.Buf) // it may be used again at once
		if err == nil {  // there is no completion: that of an operation behind it tells
			given = fi.Msg{Dest: m.dest, Key: 1, Count: 1, Datatype: atomic.Uint8, Op: atomic.Read, Result: make([]byte, 1)}
			err = m.ep.FetchAtomic(&given, 0)
		}
	case form == atomic.Base:
		err = m.ep.Atomic(&given, 0)
	case form == atomic.Fetch:
		err = m.ep.FetchAtomic(&given, 0)
	default:
		err = m.ep.CompareAtomic(&given, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	var done [2]fi.Completion
	if err := m.cq.Wait(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	if n, err := m.cq.Read(done[:]); n != 1 || err != nil {
		t.Fatalf("%d completions, %v, want one", n, err)
	}
}
