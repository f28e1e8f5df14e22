// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestReopenAtOnce(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	u := newUMEM(t, 64)
	for i := range 20 {
		// It is longer than the default, because a busy machine may free the queue
		// late.
		s, err := tryOpen(p.A, Config{UMEM: u, RXSize: 64, TXSize: 64, BindTimeout: testnet.Patience})
		if err != nil {
			t.Fatalf("open %d: %v", i, err)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Fatalf("close %d: %v", i, err)
		}
	}
}

func TestClosedSocketIsHarmless(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	u := newUMEM(t, 64)
	s := open(t, p.A, Config{UMEM: u})
	rx, tx, f, c := s.RX(), s.TX(), s.Fill(), s.Completion()
	if err := u.Close(); !errors.Is(err, ErrInUse) {
		t.Errorf("closing a UMEM in use: %v", err)
	}
	s.alwaysKick, s.alwaysWake = false, false // as with zero-copy, where the flags of the rings decide
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if rx.Peek(1)+tx.Reserve(1)+f.Reserve(1)+c.Peek(1) != 0 || tx.NeedWakeup() {
		t.Error("rings of a closed socket are not empty")
	}
	_, serr := s.Statistics()
	_, perr := s.Poll(0, nil)
	_, oerr := tryOpen(p.A, Config{Shared: s, Queue: 1})
	for what, err := range map[string]error{
		"kick": s.Kick().Err(), "waking RX": s.WakeRX().Err(), "statistics": serr, "poll": perr, "sharing": oerr,
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s of a closed socket: %v, want ErrClosed", what, err)
		}
	}
	if s.FD() != -1 {
		t.Errorf("descriptor %d of a closed socket", s.FD())
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	if u.Chunk(0) != nil || u.Chunks() != 0 {
		t.Error("a closed UMEM has memory")
	}
	if _, err := tryOpen(p.A, Config{UMEM: u}); !errors.Is(err, ErrClosed) {
		t.Errorf("opening on a closed UMEM: %v", err)
	}
}

func TestLastSocketReleasesSharedRings(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	first := open(t, p.A, Config{UMEM: newUMEM(t, 64), FillSize: 64, CompletionSize: 64})
	second := open(t, p.A, Config{Shared: first})
	fill(second, 0, 10)
	for i, want := range []struct{ size, free int }{{64, 54}, {0, 0}} {
		if err := []*Socket{first, second}[i].Close(); err != nil {
			t.Fatal(err)
		}
		// A driver with zero-copy takes the chunks as soon as it is told of them.
		if f := second.Fill(); f.Size() != want.size || f.Free() != want.free && !(zeroCopy(t) && f.Free() > want.free && f.Size() > 0) {
			t.Errorf("after %d closed: Fill has %d slots, %d free; want %+v", i+1, f.Size(), f.Free(), want)
		}
	}
}

func TestInterfaceGoesAway(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	a := station(t, p.A, redirect(t, p.A), Config{})
	a.send(0, 0, 1)
	testnet.IP(t, p.A, "link set "+p.A.IfName+" down")
	if r := a.Kick(); r != KickDown || !errors.Is(r.Err(), ErrInterfaceDown) || !errors.Is(r.Err(), unix.ENETDOWN) {
		t.Errorf("interface down: %v, %v", r, r.Err())
	}
	testnet.IP(t, p.A, "link set "+p.A.IfName+" up")
	testnet.Running(t, p.A)
	a.flush(t)
	settle(t, a)
	if testnet.Borrowed(t) != nil {
		return // a NIC cannot be removed
	}
	testnet.IP(t, p.A, "link del "+p.A.IfName)
	if r := a.Kick(); r != KickUnbound || !errors.Is(r.Err(), ErrUnbound) || !errors.Is(r.Err(), unix.ENXIO) {
		t.Errorf("interface removed: %v, %v", r, r.Err())
	}
}

func TestOpenErrors(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 2})
	u, other := newUMEM(t, 64), newUMEM(t, 64)
	first := open(t, p.A, Config{UMEM: u})
	for name, c := range map[string]struct {
		cfg   Config
		is    error
		errno error // nil if refused before the kernel is asked
	}{
		"missing interface":        {Config{UMEM: other, IfIndex: 9999}, ErrNoInterface, unix.ENODEV},
		"missing queue":            {Config{UMEM: other, Queue: 2}, ErrNoQueue, unix.EINVAL},
		"missing queue, zero-copy": {Config{UMEM: other, Queue: 2, Mode: ZeroCopy}, ErrNoQueue, unix.EINVAL},
		"far queue":                {Config{UMEM: other, Queue: 1 << 16}, ErrNoQueue, nil},
		"busy queue":               {Config{UMEM: other, BindTimeout: -1}, ErrQueueBusy, unix.EBUSY},
		"zero-copy":                {Config{UMEM: other, Queue: 1, Mode: ZeroCopy}, ErrZeroCopy, unix.EOPNOTSUPP},
		"no UMEM":                  {Config{}, ErrConfig, nil},
		"UMEM twice":               {Config{UMEM: u, Queue: 1}, ErrInUse, nil},
		"foreign UMEM":             {Config{UMEM: other, Shared: first}, ErrConfig, nil},
		"shared with mode":         {Config{Shared: first, Mode: Copy}, ErrConfig, nil},
		"shared with fill":         {Config{Shared: first, FillSize: 64}, ErrConfig, nil},
		"negative interface":       {Config{UMEM: other, IfIndex: -1}, ErrConfig, nil},
		"negative queue":           {Config{UMEM: other, Queue: -1}, ErrConfig, nil},
		"odd RX":                   {Config{UMEM: other, RXSize: 100}, ErrConfig, nil},
		"negative TX":              {Config{UMEM: other, TXSize: -2}, ErrConfig, nil},
		"huge completion":          {Config{UMEM: other, CompletionSize: 1 << 25}, ErrConfig, nil},
		"no fill":                  {Config{UMEM: other, FillSize: NoRing}, ErrConfig, nil},
		"neither RX nor TX":        {Config{UMEM: other, RXSize: NoRing, TXSize: NoRing}, ErrConfig, nil},
		"mode":                     {Config{UMEM: other, Mode: 7}, ErrConfig, nil},
		"small budget":             {Config{UMEM: other, TXBudget: 31}, ErrConfig, nil},
		"budget beyond TX":         {Config{UMEM: other, TXSize: 64, TXBudget: 65}, ErrConfig, nil},
		"negative send buffer":     {Config{UMEM: other, SendBuffer: -1}, ErrConfig, nil},
		"negative busy poll":       {Config{UMEM: other, BusyPoll: BusyPoll{Time: -1}}, ErrConfig, nil},
		"huge busy-poll budget":    {Config{UMEM: other, BusyPoll: BusyPoll{Budget: 1 << 16}}, ErrConfig, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "zero-copy" && zeroCopy(t) {
				t.Skip("this driver has it")
			}
			s, err := tryOpen(p.A, c.cfg)
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if !errors.Is(err, c.is) || c.errno != nil && !errors.Is(err, c.errno) {
				t.Errorf("got %v; want %v and errno %v", err, c.is, c.errno)
			}
			if s != nil {
				t.Error("a socket besides the error")
			}
		})
	}
	// None of the failures has left anything registered.
	if other.sockets != 0 || u.sockets != 1 {
		t.Errorf("sockets counted: %d and %d, want 0 and 1", other.sockets, u.sockets)
	}
	open(t, p.A, Config{UMEM: other, Queue: 1}).Close()
}

func TestOptionsAreApplied(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	cfg := Config{
		UMEM: newUMEM(t, 64), Mode: Copy, SendBuffer: 4 << 20,
		BusyPoll: BusyPoll{Time: 20 * time.Microsecond}, // set, not used: no traffic here
	}
	options := map[int]int{unix.SO_SNDBUF: 4 << 20, unix.SO_PREFER_BUSY_POLL: 1, unix.SO_BUSY_POLL: 20}
	if testnet.KernelBefore(t, 5, 11) {
		if _, err := tryOpen(p.A, cfg); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "5.11") {
			t.Errorf("busy polling on a kernel without it: %v", err)
		}
		cfg.BusyPoll = BusyPoll{}
		options = map[int]int{unix.SO_SNDBUF: 4 << 20}
	}
	s := open(t, p.A, cfg)
	for name, want := range options {
		if got, err := unix.GetsockoptInt(s.FD(), unix.SOL_SOCKET, name); err != nil || got != want {
			t.Errorf("option %d is %d, %v; want %d", name, got, err, want)
		}
	}
	if s.Mode() != Copy || s.Queue() != 0 || s.TXBudget() < defaultTXBudget {
		t.Errorf("mode %v, queue %d, budget %d", s.Mode(), s.Queue(), s.TXBudget())
	}
}

func TestUMEMErrors(t *testing.T) {
	for _, cfg := range []UMEMConfig{
		{}, {Chunks: -1}, {Chunks: 1 << 32}, {Chunks: 1, ChunkSize: 1024}, {Chunks: 1, ChunkSize: 3000},
		{Chunks: 1, Headroom: -1}, {Chunks: 1, Headroom: 2048 - 256}, {Chunks: 1, ChunkSize: 8192},
	} {
		if u, err := NewUMEM(cfg); !errors.Is(err, ErrConfig) || u != nil {
			t.Errorf("%+v: %v, want ErrConfig", cfg, err)
		}
	}
}

func TestUMEMBounds(t *testing.T) {
	for _, cfg := range []UMEMConfig{{Chunks: 3}, {Chunks: 1025, ChunkSize: 4096, Headroom: 64}, {Chunks: 1024, NoHuge: true}} {
		u, err := NewUMEM(cfg)
		if err != nil {
			t.Fatal(err)
		}
		size := uint64(u.ChunkSize())
		end := uint64(u.Chunks()) * size
		for _, c := range []struct {
			addr uint64
			want int // -1 for nil
		}{{0, int(size)}, {1, int(size) - 1}, {size - 1, 1}, {size, int(size)}, {end - 1, 1}, {end, -1}, {1 << 63, -1}, {1<<64 - 1, -1}} {
			got := u.Chunk(c.addr)
			if (got == nil) != (c.want < 0) || c.want >= 0 && (len(got) != c.want || cap(got) != c.want) {
				t.Errorf("Chunk(%#x): %d bytes, want %d", c.addr, len(got), c.want)
			}
		}
		for _, c := range []struct {
			d  Desc
			ok bool
		}{{Desc{Addr: 0, Len: uint32(size)}, true}, {Desc{Addr: 1, Len: uint32(size)}, false}, {Desc{Addr: end, Len: 0}, false},
			{Desc{Addr: end - 1, Len: 1}, true}, {Desc{Addr: 0, Len: 1<<32 - 1}, false}} {
			if got := u.Frame(c.d); (got != nil) != c.ok || c.ok && len(got) != int(c.d.Len) {
				t.Errorf("Frame(%+v): %d bytes, want it to be %v", c.d, len(got), c.ok)
			}
		}
		if want := u.ChunkSize() - cfg.Headroom - 256; u.MaxRX() != want {
			t.Errorf("MaxRX %d, want %d", u.MaxRX(), want)
		}
		if cfg.NoHuge && u.Pages() != PagesSmall || strings.HasPrefix(u.Pages().String(), "Pages(") {
			t.Errorf("%+v got %v", cfg, u.Pages())
		}
		for _, r := range [][2]int{{-1, 1}, {0, 0}, {0, u.Chunks() + 1}, {u.Chunks(), 1}, {1, u.Chunks()}} {
			if _, err := u.Pool(r[0], r[1]); !errors.Is(err, ErrConfig) {
				t.Errorf("Pool%v: %v", r, err)
			}
		}
		if err := errors.Join(u.Close(), u.Close()); err != nil {
			t.Error(err)
		}
	}
}

// held counts the process's open files and mappings of sockets.
func held(t *testing.T) (files, maps int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds), strings.Count(string(text), "socket:[") + strings.Count(string(text), "anon_inode")
}

func TestNothingLeaks(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	size := 64 << 20 // bytes of UMEM: a leak shows in the size of the process
	once := func(cfg Config) {
		u, err := NewUMEM(UMEMConfig{Chunks: size / 2048, NoHuge: true})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		cfg.UMEM = u
		s, err := tryOpen(p.A, cfg)
		if err != nil {
			return // some configurations fail on purpose, late
		}
		defer s.Close()
		if shared, err := tryOpen(p.A, Config{Shared: s}); err == nil {
			shared.Close()
		}
	}
	configs := []Config{{}, {Queue: 9}, {Mode: ZeroCopy}, {TXSize: NoRing}, {TXSize: 1 << 24, TXBudget: 1 << 24, Queue: 3}}
	for _, c := range configs { // first use opens what stays open, such as epoll
		once(c)
	}
	files, maps := held(t)
	rss := mapped(t)
	for range 3 {
		for _, c := range configs {
			once(c)
		}
	}
	// Fewer are no leak: the runtime may have closed a handle of an earlier process.
	if f, m := held(t); f > files || m > maps {
		t.Errorf("%d files and %d socket mappings, were %d and %d", f, m, files, maps)
	}
	// 15 rounds of a leak are far more than this; the Go heap may grow by an arena.
	if now := mapped(t); now > rss+4*size {
		t.Errorf("%d bytes mapped, were %d", now, rss)
	}
}

// mapped is the size of the process's address space in bytes.
func mapped(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.Fields(string(text))[0] {
		n = n*10 + int(c-'0')
	}
	return n * os.Getpagesize()
}
