// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// done takes one completion, and insists on success.
func done(t *testing.T, f *fixture) fi.Completion {
	t.Helper()
	c := take(t, f)
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	return c
}

// rmaKinds are the ways to describe a transfer of n bytes to offset.
var rmaKinds = map[string]func(rng *rand.Rand, x *fi.RMA){
	"plain":  func(*rand.Rand, *fi.RMA) {},
	"pieces": func(rng *rand.Rand, x *fi.RMA) { x.Buf, x.Pieces = nil, divide(rng, x.Buf, 1) },
	"extents": func(_ *rand.Rand, x *fi.RMA) {
		if n := len(x.Buf); n > 1 {
			x.Extents = []mr.Extent{{Key: x.Key, Offset: x.Offset, Count: uint32(n / 3)}, {Key: x.Key, Offset: x.Offset + uint64(n/3), Count: uint32(n - n/3)}}
			if n < 3 {
				x.Extents = x.Extents[1:]
			}
			x.Key, x.Offset = 0, 0
		}
	},
	"both": func(rng *rand.Rand, x *fi.RMA) {
		if n := len(x.Buf); n > 0 {
			x.Extents = []mr.Extent{{Key: x.Key, Offset: x.Offset, Count: uint32(n)}}
			x.Key, x.Offset, x.Buf, x.Pieces = 0, 0, nil, divide(rng, x.Buf, 1)
		}
	},
}

// Whatever is written is read back: of every length, at every alignment, from buffers,
// pieces and extents, with data and without; the bytes around it stay as they are.
func TestRMA(t *testing.T) {
	for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		f := setUp(t, fi.DomainAttr{Progress: progress}, 64)
		rng := rand.New(rand.NewPCG(1, uint64(progress)))
		model := bytes.Clone(f.mem)
		for i, n := range []int{0, 1, 7, 8, 9, 63, 80, 81, 1399, 1400, 1467, 5000, 60000, 1 << 16} {
			for kind, describe := range rmaKinds {
				at := rng.IntN(len(f.mem) - n + 1)
				data, back := random(rng, n), make([]byte, n)
				copy(model[at:], data)
				for _, c := range []struct {
					post  func(*fi.RMA, fi.OpFlags) error
					buf   []byte
					flags fi.CompletionFlags
				}{{f.ep.Write, data, fi.CompletionRMA | fi.CompletionWrite}, {f.ep.Read, back, fi.CompletionRMA | fi.CompletionRead}} {
					x := fi.RMA{Buf: c.buf, Dest: f.dest, Key: 1, Offset: uint64(at), Context: i}
					describe(rng, &x)
					if err := c.post(&x, 0); err != nil {
						t.Fatal(err)
					}
					if got := done(t, f); got.Context != any(i) || got.Flags != c.flags || got.Bytes != n || got.Source != f.dest || got.Data != 0 {
						t.Errorf("%s of %d bytes: %+v, want flags %v", kind, n, got, c.flags)
					}
				}
				if !bytes.Equal(back, data) || !bytes.Equal(f.mem, model) {
					t.Fatalf("%s of %d bytes at %d: read back: %t, memory right: %t", kind, n, at, bytes.Equal(back, data), bytes.Equal(f.mem, model))
				}
			}
		}
	}
}

// Injected writes leave the caller's memory alone after the call, and only failures make
// a completion.
func TestInjectWrite(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	cntr, err := f.client.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err := errors.Join(err, ep.Bind(f.av, 0), ep.Bind(f.cq, 0), ep.Bind(cntr, fi.BindWrite), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	buf := bytes.Repeat([]byte{1}, 80)
	x := fi.RMA{Buf: buf, Dest: f.dest, Key: 1, Offset: 3}
	if err := ep.InjectWrite(&x); err != nil {
		t.Fatal(err)
	}
	clear(buf)
	x = fi.RMA{Pieces: [][]byte{{2}, {2, 2}}, Extents: []mr.Extent{{Key: 1, Offset: 200, Count: 1}, {Key: 1, Offset: 300, Count: 2}}, Dest: f.dest}
	if err := ep.InjectWrite(&x); err != nil {
		t.Fatal(err)
	}
	clear(x.Extents)
	clear(x.Pieces[1])
	if err := cntr.Wait(ctx(t), 2); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, len(f.mem))
	copy(want[3:], bytes.Repeat([]byte{1}, 80))
	want[200], want[300], want[301] = 2, 2, 2
	if !bytes.Equal(f.mem, want) {
		t.Error("memory does not have what was injected")
	}
	if err := ep.InjectWrite(&fi.RMA{Buf: buf, Dest: f.dest, Key: 99}); err != nil {
		t.Fatal(err)
	}
	if c := take(t, f); !errors.Is(c.Err, fi.ErrNoKey) {
		t.Errorf("%+v: want the failure, and no completion before it", c)
	}
	big := fi.RMA{Buf: make([]byte, 81), Dest: f.dest, Key: 1}
	for name, err := range map[string]error{
		"InjectWrite": ep.InjectWrite(&big), "InjectWriteData": ep.InjectWriteData(&big), "FlagInject": ep.Write(&big, fi.FlagInject),
	} {
		if !errors.Is(err, fi.ErrTooBig) {
			t.Errorf("%s of 81 bytes: %v, want ErrTooBig", name, err)
		}
	}
	if err := ep.Read(&big, fi.FlagInject); err != nil { // nothing is sent from the buffer
		t.Error(err)
	}
	if c := done(t, f); c.Bytes != 81 {
		t.Errorf("%+v", c)
	}
}

// What cannot be posted is refused at once, and what the target refuses changes nothing.
func TestRMARefused(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	clear(f.mem)
	b := make([]byte, 16)
	at := func(x fi.RMA) fi.RMA {
		x.Dest = f.dest
		return x
	}
	huge := slices.Repeat([][]byte{make([]byte, 4<<20)}, 1024)
	for name, c := range map[string]struct {
		x     fi.RMA
		flags fi.OpFlags
		want  error
	}{
		"unknown flags":        {at(fi.RMA{Buf: b, Key: 1}), 1 << 40, fi.ErrBadFlags},
		"commit":               {at(fi.RMA{Buf: b, Key: 1}), commitComplete, fi.ErrNotImplemented},
		"no peer":              {fi.RMA{Buf: b, Key: 1, Dest: 77}, 0, fi.ErrUnknownPeer},
		"two buffers":          {at(fi.RMA{Buf: b, Pieces: [][]byte{b}, Key: 1}), 0, fi.ErrLength},
		"many pieces":          {at(fi.RMA{Pieces: make([][]byte, fi.MaxPieces+1), Key: 1}), 0, fi.ErrTooMany},
		"key beside extents":   {at(fi.RMA{Buf: b, Extents: []mr.Extent{{Key: 1, Count: 16}}, Key: 1}), 0, fi.ErrNotImplemented},
		"extents of other sum": {at(fi.RMA{Buf: b, Extents: []mr.Extent{{Key: 1, Count: 17}}}), 0, fi.ErrCount},
		"empty extent":         {at(fi.RMA{Buf: b, Extents: []mr.Extent{{Key: 1, Count: 16}, {Key: 1}}}), 0, fi.ErrCount},
		"too long":             {at(fi.RMA{Pieces: huge, Key: 1}), 0, fi.ErrTooMany},
	} {
		for _, post := range []func(*fi.RMA, fi.OpFlags) error{f.ep.Read, f.ep.Write} {
			if err := post(&c.x, c.flags); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	}
	if err := errors.Join(f.ep.Read(nil, 0), f.ep.Write(nil, 0)); !errors.Is(err, fi.ErrLength) {
		t.Errorf("nil: %v, want ErrLength", err)
	}
	for name, c := range map[string]struct {
		x           fi.RMA
		read, write error
	}{
		"no key":         {at(fi.RMA{Buf: b, Key: 99}), fi.ErrNoKey, fi.ErrNoKey},
		"no key, empty":  {at(fi.RMA{Key: 99}), fi.ErrNoKey, fi.ErrNoKey},
		"read-only":      {at(fi.RMA{Buf: b, Key: 2}), nil, fi.ErrAccess},
		"beyond the end": {at(fi.RMA{Buf: make([]byte, 4000), Key: 1, Offset: 1<<16 - 3999}), fi.ErrOutOfBounds, fi.ErrOutOfBounds},
		"stale":          {at(fi.RMA{Buf: b, Key: 1, Incarnation: f.region.Incarnation() + 1}), fi.ErrPeerRestarted, fi.ErrPeerRestarted},
		"meant":          {at(fi.RMA{Buf: b, Key: 1, Incarnation: f.region.Incarnation()}), nil, nil},
		"empty at end":   {at(fi.RMA{Key: 1, Offset: 1 << 16}), nil, nil},
	} {
		for i := range c.x.Buf {
			c.x.Buf[i] = 5
		}
		for i, post := range []func(*fi.RMA, fi.OpFlags) error{f.ep.Write, f.ep.Read} {
			want := []error{c.write, c.read}[i]
			if err := post(&c.x, 0); err != nil {
				t.Fatal(err)
			}
			got := take(t, f)
			if !errors.Is(got.Err, want) || want != nil && !errors.Is(got.Err, fi.ErrNotExecuted) {
				t.Errorf("%s: %v, want %v", name, got.Err, want)
			}
			if want != nil && !bytes.Equal(f.mem, make([]byte, len(f.mem))) {
				t.Errorf("%s: a refused write has changed memory", name)
				clear(f.mem)
			}
		}
		clear(f.mem)
	}
}

// A transfer with data makes an entry at the target, which says that it is RMA, its
// direction and length; transfers of nothing do too.
func TestRMAWithData(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	at := newTarget(t, f.server, 16, f.ep.Name())
	dest, err := f.av.Insert(ctx(t), at.name)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range []int{0, 1, 80, 5000} {
		buf := bytes.Repeat([]byte{byte(i + 1)}, n)
		x := fi.RMA{Buf: buf, Dest: dest, Key: 1, Offset: 5, Data: uint64(i) << 50}
		for _, c := range []struct {
			name  string
			post  func() error
			flags fi.CompletionFlags
			told  bool // at the initiator
		}{
			{"write", func() error { return f.ep.Write(&x, fi.FlagRemoteCQData) }, fi.CompletionRemoteWrite, true},
			{"read", func() error { return f.ep.Read(&x, fi.FlagRemoteCQData) }, fi.CompletionRemoteRead, true},
			{"inject", func() error { return f.ep.InjectWriteData(&x) }, fi.CompletionRemoteWrite, false},
		} {
			if err := c.post(); errors.Is(err, fi.ErrTooBig) && n > 80 && !c.told {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			got := at.next(t)
			if want := c.flags | fi.CompletionRMA | fi.CompletionRemoteCQData; got.Flags != want || got.Bytes != n || got.Data != x.Data || got.Endpoint != at.ep || got.Source != 0 {
				t.Errorf("%s of %d bytes: %+v, want flags %v", c.name, n, got, want)
			}
			if c.flags == fi.CompletionRemoteWrite && !bytes.Equal(f.mem[5:5+n], buf) {
				t.Errorf("%s of %d bytes: the entry came before memory shows it", c.name, n)
			}
			if c.told {
				done(t, f)
			}
		}
	}
}

// Counters of reads and writes count transfers, at either side.
func TestRMACounters(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	var c [6]*fi.Counter
	for i := range c {
		d := f.client
		if i >= 2 {
			d = f.server
		}
		var err error
		if c[i], err = d.NewCounter(); err != nil {
			t.Fatal(err)
		}
	}
	ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err := errors.Join(err, ep.Bind(f.av, 0), ep.Bind(c[0], fi.BindRead), ep.Bind(c[1], fi.BindWrite), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	target, err := f.server.NewEndpoint(fi.EndpointAttr{Number: 7})
	if err := errors.Join(err, target.Bind(c[2], fi.BindRemoteRead), target.Bind(c[3], fi.BindRemoteWrite), target.Enable(),
		f.server.BindRegion(f.region, c[4], fi.BindRemoteRead), f.server.BindRegion(f.region, c[5], fi.BindRemoteWrite)); err != nil {
		t.Fatal(err)
	}
	dest, err := f.av.Insert(ctx(t), target.Name())
	if err != nil {
		t.Fatal(err)
	}
	x := fi.RMA{Buf: make([]byte, 3000), Dest: dest, Key: 1}
	for i := range 5 {
		post := ep.Read
		if i < 3 {
			post = ep.Write
		}
		if err := post(&x, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i := range c {
		want := uint64(2 + i%2)
		if err := c[i].Wait(ctx(t), want); err != nil || c[i].Read() != want {
			t.Errorf("counter %d: %d, %v; want %d", i, c[i].Read(), err, want)
		}
	}
}

// Deferred reads and writes start when their counters say so, in a chain.
func TestDeferredRMA(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	var c [2]*fi.Counter
	for i := range c {
		var err error
		if c[i], err = f.client.NewCounter(); err != nil {
			t.Fatal(err)
		}
	}
	data, back := bytes.Repeat([]byte{9}, 2000), make([]byte, 2000)
	write := &fi.RMA{Buf: data, Dest: f.dest, Key: 1, Offset: 1, Context: "write"}
	read := &fi.RMA{Buf: back, Dest: f.dest, Key: 1, Offset: 1, Context: "read"}
	if err := errors.Join(
		f.client.QueueWork(&fi.Work{When: fi.Threshold{Counter: c[1], Value: 1}, Do: fi.RMAWork{Endpoint: f.ep, Op: atomic.Read, RMA: read}}),
		f.client.QueueWork(&fi.Work{When: fi.Threshold{Counter: c[0], Value: 5}, Do: fi.RMAWork{Endpoint: f.ep, Op: atomic.Write, RMA: write}, Completion: c[1]}),
	); err != nil {
		t.Fatal(err)
	}
	c[0].Add(5)
	for _, want := range []string{"write", "read"} {
		if got := done(t, f); got.Context != any(want) || got.Bytes != 2000 {
			t.Errorf("%+v, want the %s", got, want)
		}
	}
	if !bytes.Equal(back, data) {
		t.Error("the read does not find what was written before")
	}
	cancelled := &fi.Work{When: fi.Threshold{Counter: c[0], Value: 99}, Do: fi.RMAWork{Endpoint: f.ep, Op: atomic.Write, RMA: write}}
	if err := errors.Join(f.client.QueueWork(cancelled), f.client.CancelWork(cancelled)); err != nil {
		t.Fatal(err)
	}
	if got := take(t, f); !errors.Is(got.Err, fi.ErrCancelled) || got.Flags != fi.CompletionRMA|fi.CompletionWrite {
		t.Errorf("%+v, want a cancelled write", got)
	}
	x := *write
	x.Trigger = &fi.Threshold{Counter: c[0], Value: 1}
	for name, do := range map[string]fi.RMAWork{
		"operation":    {Endpoint: f.ep, Op: atomic.Sum, RMA: write},
		"no message":   {Endpoint: f.ep, Op: atomic.Read},
		"no endpoint":  {Op: atomic.Read, RMA: read},
		"two triggers": {Endpoint: f.ep, Op: atomic.Write, RMA: &x},
	} {
		if err := f.client.QueueWork(&fi.Work{When: fi.Threshold{Counter: c[0], Value: 1}, Do: do}); err == nil {
			t.Errorf("%s: queued", name)
		}
	}
}

// Aliases post transfers with flags of their own.
func TestRMAByAlias(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	a, err := f.ep.Alias(fi.FlagInject)
	if err != nil {
		t.Fatal(err)
	}
	x := fi.RMA{Buf: make([]byte, 81), Dest: f.dest, Key: 1}
	if err := a.Write(&x, fi.FlagDefaults); !errors.Is(err, fi.ErrTooBig) {
		t.Errorf("81 bytes by an alias that injects: %v, want ErrTooBig", err)
	}
	if err := errors.Join(a.Read(&x, fi.FlagDefaults), a.Write(&x, 0)); err != nil {
		t.Fatal(err)
	}
	x.Buf = x.Buf[:8]
	if err := errors.Join(a.InjectWrite(&x), a.Write(&x, fi.FlagDefaults)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if c := done(t, f); c.Endpoint != f.ep {
			t.Errorf("completion %d: %+v", i, c)
		}
	}
	if err := errors.Join(a.Close(), f.ep.Close()); err != nil {
		t.Fatal(err)
	}
	if err := a.InjectWriteData(&x); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("by a closed alias: %v", err)
	}
}

// Posting and executing transfers does not allocate.
func TestRMADoesNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("under the race detector allocations mean nothing")
	}
	for _, n := range []int{0, 8, 1000, 1 << 15} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			f := byHand(t)
			x := fi.RMA{Buf: make([]byte, n), Dest: f.dest, Key: 1}
			var one [1]fi.Completion
			round := func() {
				if f.ep.Write(&x, 0) != nil || f.ep.Read(&x, 0) != nil {
					t.Fatal("not posted")
				}
				for left := 2; left > 0; {
					f.client.Progress()
					f.server.Progress()
					k, err := f.cq.Read(one[:])
					if err != nil {
						t.Fatal(err)
					}
					left -= k
				}
			}
			for range 100 {
				round()
			}
			// On a busy machine round trips take long, so an attempt may include the
			// search for another next hop, which allocates. What a transfer allocates is
			// in all of them.
			got := testing.AllocsPerRun(100, round)
			for range 9 {
				if got == 0 {
					break
				}
				got = testing.AllocsPerRun(100, round)
			}
			if got != 0 {
				t.Errorf("%v allocations", got)
			}
		})
	}
}

// Transfers take every flag that atomics take. A fenced one, and those after it, wait for
// every earlier operation to complete.
func TestRMAFlags(t *testing.T) {
	for _, fence := range []fi.OpFlags{0, fi.FlagFence} {
		f := byHand(t)
		x := fi.RMA{Buf: []byte{1}, Dest: f.dest, Key: 1, Offset: 800}
		y := x
		y.Offset++
		if err := errors.Join(f.ep.Write(&x, fi.FlagMore), f.ep.Write(&y, fence)); err != nil {
			t.Fatal(err)
		}
		f.send()
		f.serve(t, "what need not wait has run", func() bool { return f.mem[800] == 1 && (fence != 0 || f.mem[801] == 1) })
		if fence != 0 && f.mem[801] != 0 {
			t.Errorf("%d ran before the first was known to have", f.mem[801])
		}
		f.settle(t, 2)
		levels := fi.FlagDeliveryComplete | fi.FlagInjectComplete | fi.FlagTransmitComplete | fi.FlagMatchComplete | fi.FlagCompletion
		if err := errors.Join(f.ep.Write(&x, levels|fi.FlagInject), f.ep.Read(&y, levels|fence)); err != nil {
			t.Fatal(err)
		}
		f.settle(t, 2)
	}
	f := setUp(t, fi.DomainAttr{}, 64)
	ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err := errors.Join(err, ep.Bind(f.av, 0), ep.Bind(f.cq, fi.BindSelective), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	x := fi.RMA{Buf: []byte{1}, Dest: f.dest, Key: 1}
	if err := errors.Join(ep.Write(&x, 0), ep.Read(&x, 0), ep.Write(&x, fi.FlagCompletion)); err != nil {
		t.Fatal(err)
	}
	if c := done(t, f); c.Flags != fi.CompletionRMA|fi.CompletionWrite {
		t.Errorf("%+v, want the one that asked for a completion", c)
	}
}

// Transfers and atomics of one endpoint are in one order: an atomic behind a long write
// finds it, and a read behind the atomic finds both.
func TestRMAIsOrdered(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	if err := f.client.SetFaults(fi.Faults{Loss: 0.02, Reorder: 0.1}); err != nil {
		t.Fatal(err)
	}
	const n = 1 << 14
	for i := range byte(20) {
		write := fi.RMA{Buf: bytes.Repeat([]byte{i}, n), Dest: f.dest, Key: 1}
		read := fi.RMA{Buf: make([]byte, n), Dest: f.dest, Key: 1}
		sum := fi.Msg{Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Result: make([]byte, 8), Dest: f.dest, Key: 1, Offset: n - 8, Datatype: atomic.Uint64, Op: atomic.Sum}
		if err := errors.Join(f.ep.Write(&write, 0), f.ep.FetchAtomic(&sum, 0), f.ep.Read(&read, 0)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			done(t, f)
		}
		want := bytes.Clone(write.Buf)
		if want[n-8]++; !bytes.Equal(sum.Result, write.Buf[:8]) || !bytes.Equal(read.Buf, want) {
			t.Fatalf("round %d: the atomic finds % x; the read finds both before it: %t", i, sum.Result, bytes.Equal(read.Buf, want))
		}
	}
}
