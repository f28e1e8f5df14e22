// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
)

func TestRegister(t *testing.T) {
	tab, mem := NewTable(), adopt(t, 4096)
	rd := tab.NewReader()
	defer rd.Close()
	rd.Enter()
	defer rd.Exit()
	for _, key := range []uint64{0, 1, math.MaxUint64} {
		r := register(t, tab, mem, Options{Key: &key, Access: RemoteRead, Offset: 64, Length: 128})
		if r.Key() != key || rd.Lookup(key) != r || r.Len() != 128 || r.Access() != RemoteRead || r.Name() != "" ||
			r.Base() != 0 || r.Memory() != mem || &r.Bytes()[0] != &mem.Bytes()[64] {
			t.Errorf("%+v", r)
		}
		if _, err := tab.Register(mem, Options{Key: &key}); !errors.Is(err, ErrKeyInUse) || !errors.Is(err, syscall.ENOKEY) {
			t.Errorf("key %d twice: %v", key, err)
		}
	}
	a, b := register(t, tab, mem, Options{}), register(t, tab, mem, Options{Virtual: true})
	if a.Key() == b.Key() || rd.Lookup(a.Key()) != a || rd.Lookup(b.Key()) != b || a.Len() != 4096 {
		t.Errorf("provider's keys %#x and %#x", a.Key(), b.Key())
	}
	if b.Base() != addressOf(mem.Bytes()) {
		t.Errorf("base %#x, want %#x", b.Base(), addressOf(mem.Bytes()))
	}
	if tab.count() != 5 || tab.Named() != 0 {
		t.Errorf("Count %d, Named %d", tab.count(), tab.Named())
	}
	if rd.Lookup(2) != nil {
		t.Error("a key that nobody registered is found")
	}
}

func TestRegisterRefuses(t *testing.T) {
	tab, mem := NewTable(), adopt(t, 4096)
	register(t, tab, mem, Options{Name: "taken"})
	for name, tt := range map[string]struct {
		o    Options
		want error
	}{
		"access":          {Options{Access: 4}, ErrAccess},
		"long name":       {Options{Name: strings.Repeat("x", MaxName+1)}, ErrName},
		"control in name": {Options{Name: "a\nb"}, ErrName},
		"bytes as name":   {Options{Name: "a\xff"}, ErrName},
		"name in use":     {Options{Name: "taken"}, ErrNameInUse},
		"negative offset": {Options{Offset: -1}, ErrSize},
		"negative length": {Options{Length: -1}, ErrSize},
		"at the end":      {Options{Offset: 4096}, ErrSize},
		"past the end":    {Options{Offset: 5000}, ErrSize},
		"too long":        {Options{Offset: 1, Length: 4096}, ErrSize},
		"overflow":        {Options{Offset: math.MaxInt, Length: math.MaxInt}, ErrSize},
	} {
		if r, err := tab.Register(mem, tt.o); !errors.Is(err, tt.want) || r != nil {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if tab.count() != 1 || tab.Named() != 1 || len(mem.regions) != 1 {
		t.Errorf("refusals left traces: Count %d, Named %d, %d holds", tab.count(), tab.Named(), len(mem.regions))
	}
}

func TestResolve(t *testing.T) {
	mem, err := Alloc(4096, AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mem.Close() })
	const top = math.MaxUint64
	tab := NewTable()
	odd := register(t, tab, mem, Options{Access: RemoteRead, Offset: 4, Length: 100}) // 4 bytes off alignment
	virtual := register(t, tab, mem, Options{Access: RemoteRead | RemoteWrite, Virtual: true})
	base := virtual.Base()
	tests := []struct {
		name             string
		r                *Region
		offset, n, total uint64
		align            int
		need             Access
		want             Fault
	}{
		{"all", odd, 0, 100, 100, 1, RemoteRead, FaultNone},
		{"last byte", odd, 99, 1, 1, 1, RemoteRead, FaultNone},
		{"no rights needed", odd, 0, 1, 1, 0, 0, FaultNone},
		{"total left out", odd, 0, 100, 0, 1, RemoteRead, FaultNone},
		{"nothing at the end", odd, 100, 0, 0, 1, RemoteRead, FaultNone},
		{"nothing past the end", odd, 101, 0, 0, 1, RemoteRead, FaultBounds},
		{"one too many", odd, 0, 101, 101, 1, RemoteRead, FaultBounds},
		{"behind the end", odd, 100, 1, 1, 1, RemoteRead, FaultBounds},
		{"part inside, whole not", odd, 0, 8, 101, 1, RemoteRead, FaultBounds},
		{"huge offset", odd, top, 1, 1, 1, RemoteRead, FaultBounds},
		{"offset and length wrap", odd, top - 7, 16, 16, 1, RemoteRead, FaultBounds},
		{"huge length", odd, 8, top, top, 1, RemoteRead, FaultBounds},
		{"huge total", odd, 8, 8, top, 1, RemoteRead, FaultBounds},
		{"aligned by address", odd, 4, 8, 8, 8, RemoteRead, FaultNone},
		{"aligned by offset only", odd, 8, 8, 8, 8, RemoteRead, FaultAlignment},
		{"write", odd, 4, 8, 8, 8, RemoteWrite, FaultAccess},
		{"both", odd, 4, 8, 8, 8, RemoteRead | RemoteWrite, FaultAccess},
		{"access before bounds", odd, top, 8, 8, 8, RemoteWrite, FaultAccess},
		{"bounds before alignment", odd, 97, 8, 8, 8, RemoteRead, FaultBounds},
		{"virtual, first", virtual, base, 8, 8, 8, RemoteRead | RemoteWrite, FaultNone},
		{"virtual, last", virtual, base + 4088, 8, 8, 8, RemoteWrite, FaultNone},
		{"virtual, before", virtual, base - 1, 1, 1, 1, RemoteWrite, FaultBounds},
		{"virtual, behind", virtual, base + 4096, 1, 1, 1, RemoteWrite, FaultBounds},
		{"virtual, offset", virtual, 0, 8, 8, 8, RemoteWrite, FaultBounds},
		{"virtual, misaligned", virtual, base + 8, 16, 16, 16, RemoteWrite, FaultAlignment},
	}
	for _, tt := range tests {
		b, fault := tt.r.Resolve(tt.offset, tt.n, tt.total, tt.align, tt.need)
		if fault != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, fault, tt.want)
			continue
		}
		if fault != FaultNone {
			if b != nil {
				t.Errorf("%s: bytes in spite of %v", tt.name, fault)
			}
			continue
		}
		if uint64(len(b)) != tt.n || cap(b) != len(b) {
			t.Errorf("%s: %d bytes, capacity %d, want %d", tt.name, len(b), cap(b), tt.n)
		}
		if want := tt.r.addr + tt.offset - tt.r.base; tt.n > 0 && addressOf(b) != want {
			t.Errorf("%s: at %#x, want %#x", tt.name, addressOf(b), want)
		}
	}
}

func FuzzResolve(f *testing.F) {
	f.Add(uint64(0), uint64(8), uint64(8), uint64(0))
	f.Add(uint64(math.MaxUint64), uint64(8), uint64(0), uint64(1000))
	data := make([]byte, 1000)
	f.Fuzz(func(t *testing.T, offset, n, total, base uint64) {
		r := Region{data: data, base: base}
		b, fault := r.Resolve(offset, n, total, 1, 0)
		inside := offset >= base && offset-base <= 1000 && max(n, total) <= 1000-(offset-base)
		// A base near the top of the address space wraps around; no mapping lies there.
		if base <= math.MaxUint64-1000 && inside != (fault == FaultNone) {
			t.Fatalf("offset %d, base %d, n %d, total %d: %v", offset, base, n, total, fault)
		}
		if fault == FaultNone && uint64(len(b)) != n {
			t.Fatalf("%d bytes, want %d", len(b), n)
		}
	})
}

func TestCatalogue(t *testing.T) {
	tab, mem := NewTable(), adopt(t, 64)
	var rs []*Region
	for i := range 4 {
		rs = append(rs, register(t, tab, mem, Options{Name: fmt.Sprint("region", i)}))
		register(t, tab, mem, Options{}) // without a name it is not in the catalogue
	}
	check := func(want ...*Region) {
		t.Helper()
		if tab.Named() != len(want) {
			t.Errorf("%d named regions, want %d", tab.Named(), len(want))
		}
		for i, r := range want {
			if tab.At(i) != r || tab.ByName(r.Name()) != r {
				t.Errorf("at %d: %v, by name: %v, want %v", i, tab.At(i), tab.ByName(r.Name()), r)
			}
		}
		if tab.At(-1) != nil || tab.At(len(want)) != nil || tab.ByName("") != nil || tab.ByName("other") != nil {
			t.Error("something is found where nothing is")
		}
	}
	check(rs...)
	for range 2 {
		if err := rs[1].Close(); err != nil {
			t.Fatal(err)
		}
	}
	check(rs[0], rs[2], rs[3])
	again := register(t, tab, mem, Options{Name: "region1"})
	if err := rs[1].Close(); err != nil { // a late Close must not remove the new one
		t.Fatal(err)
	}
	check(rs[0], rs[2], rs[3], again)
}

// All lists what is registered, and nothing that is not any more.
func TestAll(t *testing.T) {
	mem, err := Alloc(4096, AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mem.Close() })
	tab, want := NewTable(), map[*Region]bool{}
	for i := range 100 {
		r, err := tab.Register(mem, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want[r] = true; i%3 == 0 {
			delete(want, r)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := tab.All()
	for _, r := range all {
		if !want[r] {
			t.Errorf("%v is listed, or twice, and is not registered", r)
		}
		delete(want, r)
		_ = r.Close()
	}
	if len(want) > 0 || len(tab.All()) > 0 {
		t.Errorf("%d regions are not listed; %d are after all have been closed", len(want), len(tab.All()))
	}
}

// TestIndex compares the index with a map over many random steps, with keys that collide
// and churn.
func TestIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, model := newIndex(1), map[uint64]*Region{}
	for range 50_000 {
		key := rng.Uint64N(500) << 32
		if r := model[key]; r != nil {
			x.remove(r)
			x.remove(r)
			delete(model, key)
		} else {
			r := &Region{key: key}
			x = x.grown()
			x.add(r)
			model[key] = r
		}
		probe := rng.Uint64N(500) << 32
		if x.find(probe) != model[probe] {
			t.Fatalf("key %#x: %v, want %v", probe, x.find(probe), model[probe])
		}
		if x.live != len(model) || 2*x.used > len(x.slots) {
			t.Fatalf("%d live, %d used of %d slots, want %d live", x.live, x.used, len(x.slots), len(model))
		}
	}
	if len(x.slots) > 4096 {
		t.Errorf("%d slots for %d regions", len(x.slots), x.live)
	}
}

func TestStrings(t *testing.T) {
	for got, want := range map[string]string{
		(RemoteRead | RemoteWrite).String(): "rw", RemoteWrite.String(): "w", RemoteRead.String(): "r",
		Access(0).String(): "-", FaultNone.String(): "no fault", Fault(9).String(): "Fault(9)",
		HugeAuto.String(): "auto", HugeNever.String(): "never", HugeRequire.String(): "require", Kind(9).String(): "Kind(9)",
		Pages(9).String(): "Pages(9)", KindAdopted.String(): "adopted", Huge(9).String(): "Huge(9)", FaultAccess.String(): "no access", FaultAlignment.String(): "misaligned",
		FaultBounds.String(): "out of bounds", PagesHuge.String(): "huge", PagesSmall.String(): "small",
		PagesTransparent.String(): "transparent huge", (&Region{key: 255}).String(): "key 0xff",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// ResolveEach allows what Resolve allows for every single offset, except where offsets
// count from an address or the region begins at an unaligned address: these it leaves to
// Resolve.
func TestResolveEach(t *testing.T) {
	mem, err := Alloc(4096, AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mem.Close() })
	tab := NewTable()
	regions := []*Region{
		register(t, tab, mem, Options{Access: RemoteRead | RemoteWrite, Length: 256}),
		register(t, tab, mem, Options{Access: RemoteRead, Length: 250}),
		register(t, tab, mem, Options{Access: RemoteRead | RemoteWrite, Offset: 4, Length: 100}),
		register(t, tab, mem, Options{Access: RemoteRead | RemoteWrite, Length: 4}),
		register(t, tab, mem, Options{Access: RemoteRead | RemoteWrite, Virtual: true}),
	}
	rng := rand.New(rand.NewPCG(1, 1))
	allowed := 0
	for range 20000 {
		r := regions[rng.IntN(len(regions))]
		n, align := 1<<rng.IntN(5), 1<<rng.IntN(5)
		offsets, each := make([]uint32, 1+rng.IntN(4)), FaultNone
		for i := range offsets {
			offsets[i] = uint32(rng.IntN(64) * n)
			if rng.IntN(8) == 0 {
				offsets[i] = []uint32{242, 248, 249, 255, 256, 1, 1 << 31, math.MaxUint32, math.MaxUint32 - 7}[rng.IntN(9)]
			}
			if _, fault := r.Resolve(uint64(offsets[i]), uint64(n), 0, align, RemoteWrite); fault != FaultNone {
				each = fault
			}
		}
		b := r.ResolveEach(offsets, n, align, RemoteWrite)
		usual := r.Base() == 0 && r.addr&uint64(align-1) == 0
		switch {
		case b != nil && each != FaultNone, b == nil && each == FaultNone && usual:
			t.Fatalf("%v, %d bytes at each of %v, aligned to %d: allowed %t, one by one: %v", r, n, offsets, align, b != nil, each)
		case b != nil:
			allowed++
			if &b[0] != &r.Bytes()[0] || len(b) != r.Len() {
				t.Fatal("not the bytes of the region")
			}
		}
	}
	if allowed < 1000 {
		t.Errorf("only %d were allowed", allowed)
	}
}

// Memory can be closed while regions are registered over it: the error names those that
// are there (go test -race).
func TestCloseWhileRegistering(t *testing.T) {
	tab, mem := NewTable(), adopt(t, 4096)
	stop, done := make(chan struct{}), make(chan struct{})
	held := register(t, tab, mem, Options{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			r, err := tab.Register(mem, Options{})
			if err == nil {
				err = r.Close()
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 1000 {
		if err := mem.Close(); !errors.Is(err, ErrInUse) || held.Memory() != mem {
			t.Errorf("close: %v, want ErrInUse", err)
		}
	}
	close(stop)
	<-done
}
