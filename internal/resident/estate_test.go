// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// mustTakeOver takes over the estate of an executor that is open still.
func mustTakeOver(t *testing.T, x *Executor, folder *Folder) *Executor {
	t.Helper()
	e, err := x.Estate()
	if err != nil {
		t.Fatal(err)
	}
	next, err := TakeOver(e, folder, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { next.Close() })
	return next
}

// Memory and registrations go on in the next process, by their names, pinned or not; what
// it has no use for ends when it says so, and not before.
func TestEstateMemory(t *testing.T) {
	for _, pinned := range []bool{false, true} {
		var folder *Folder
		first := mustLoad(t, Config{Sessions: 8, Regions: 4})
		if pinned {
			at := filepath.Join(testnet.BPFFS(t), "node")
			var err error
			if folder, err = OpenFolder(at); err == nil {
				err = first.Pin(at, Node{Life: 7})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for key, name := range map[uint64]string{1: "hot", 2: "other"} {
			m, found, err := first.NewMemory(name, 60)
			if err != nil || found {
				t.Fatal(found, err)
			}
			defer m.Close()
			m.Bytes()[0] = byte(key)
			if err := first.Register(m, Region{Key: key, Length: 8, Incarnation: 9, Name: Name{Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the first one fails
			next := mustTakeOver(t, first, folder)
			if m, found, err := next.NewMemory("hot", 64); err != nil || found {
				t.Errorf("memory of another size: %t, %v", found, err)
			} else {
				next.ReleaseMemory(m)
				_ = m.Close()
			}
			m, found, err := next.NewMemory("hot", 60)
			if err != nil || !found || !m.Found() || m.Bytes()[0] != 1 {
				t.Fatal(found, err)
			}
			defer m.Close()
			if regions, err := next.Regions(); err != nil || len(regions) != 2 || regions[1].Name != (Name{Memory: "hot", Name: "hot"}) || regions[1].Incarnation != 9 {
				t.Errorf("regions %+v, %v", regions, err)
			}
			first = next
			if _, _, err := first.NewMemory("other", 60); err != nil {
				t.Error(err)
			}
		}
		last := mustTakeOver(t, first, folder)
		m, _, err := last.NewMemory("hot", 60)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if err := last.Sweep(map[uint64]struct{}{1: {}}); err != nil {
			t.Error(err)
		}
		if regions, err := last.Regions(); err != nil || len(regions) != 1 || len(last.handed) != 0 {
			t.Errorf("regions %+v, %v; %d memories are held", regions, err, len(last.handed))
		}
		if pinned {
			if pins, _ := filepath.Glob(filepath.Join(folder.State(), memoryPin+"*")); len(pins) != 1 {
				t.Errorf("memories %v, want one", pins)
			}
			if err := errors.Join(folder.Remove(), folder.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}

// Sessions go on as they are: live, frozen, retire down, or with a frame of which the
// program does not know how it ended. One that is not handed over ends.
func TestEstateSessions(t *testing.T) {
	first := mustLoad(t, Config{Sessions: 8, Regions: 4})
	v, err := first.NewServer(nil, 8, func() int64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	key := session.NewKey([]byte("secret"), 3)
	params := func(i int) session.TargetParams {
		p := killed
		p.Local, p.Key = killed.Local+wire.SessionID(i), key
		return p
	}
	var all [5]*Session
	for i := range all {
		if all[i], err = v.Begin(0, params(i)); err != nil {
			t.Fatal(err)
		}
	}
	live, frozen, shut, stuck := all[0], all[1], all[2], all[3]
	h, payload, _ := wire.Parse(addFrame(session.FirstPSN(killed.Epoch) + 1))
	h.Ack = session.FirstPSN(killed.Epoch) - 1
	if o := live.Receive(0, &h, payload, nil); o.Verdict != session.Held {
		t.Fatalf("%+v, want it to be early", o)
	}
	frozen.Freeze(0, frozen.Acked())
	shut.Freeze(0, shut.Acked())
	shut.Shutdown(wire.ResetClosed)
	foreign, payload, _ := wire.Parse(addFrame(session.FirstPSN(killed.Epoch))) // of a key that is no region's: user space's
	foreign.Session = uint32(stuck.p.Local)
	v.local = dying{}
	func() {
		defer func() { _ = recover() }()
		stuck.Receive(0, &foreign, payload, nil)
	}()
	for _, s := range all {
		s.Detach()
	}
	if s, err := first.state(live.place); err != nil || s.Attended != 0 {
		t.Errorf("%+v, %v: the program still asks a process", s, err)
	}
	next := mustTakeOver(t, first, nil)
	v, err = next.NewServer(nil, 8, func() int64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	p := params(0)
	p.Epoch++
	if _, err := v.TakeOver(0, p, 0); !errors.Is(err, ErrDamaged) {
		t.Errorf("another session: %v", err)
	}
	if _, err := v.TakeOver(0, params(2), 0); !errors.Is(err, ErrDamaged) {
		t.Errorf("a session that was shut down, as a live one: %v", err)
	}
	for i, c := range []struct {
		ended         wire.ResetReason
		frozen, stuck bool
	}{{}, {frozen: true}, {ended: wire.ResetClosed}, {stuck: true}} {
		s, err := v.TakeOver(0, params(i), c.ended)
		if err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
		if s.frozen != c.frozen || s.torn != c.stuck || s.ended != c.ended || s.Due() != (c.ended != 0) {
			t.Errorf("session %d: %+v", i, s)
		}
	}
	if err := next.DropOthers(); err != nil {
		t.Error(err)
	}
	if n, err := count(next); n != 4 || err != nil {
		t.Errorf("%d sessions, %v: want those four", n, err)
	}
}

// dying is memory whose process dies as it executes.
type dying struct{}

func (dying) Check([]byte, int) (wire.Features, wire.Reason) { return 0, wire.ReasonOK }
func (dying) Execute([]byte, uint32) (int, uint8)            { panic("dies") }
func (dying) Present(uint32)                                 {}
func (dying) Leave()                                         {}

// What is not whole, or of another version, is refused, and stays.
func TestEstateRefused(t *testing.T) {
	first := mustLoad(t, Config{Sessions: 8, Regions: 4})
	for range 2 {
		if _, _, err := first.NewMemory("twice", 8); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := first.Estate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), `two memories of the name "twice"`) {
		t.Errorf("two memories of a name: %v", err)
	}
	for _, m := range first.memories {
		defer m.Close()
	}
	first.ReleaseMemory(first.memories[0])
	good, err := first.Estate()
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Estate){
		"of version v0":      func(e *Estate) { e.Version = "v0" },
		"map answers":        func(e *Estate) { delete(e.Maps, executorMapAnswers) },
		"map places":         func(e *Estate) { e.Maps[executorMapPlaces] = -1 },
		`memory "twice"`:     func(e *Estate) { e.Memories[0].FD = -1 },
		"is to be mapped as": func(e *Estate) { e.Memories[0].Size = 1 << 20 },
	} {
		bad := *good
		bad.Maps, bad.Memories = maps.Clone(good.Maps), append([]EstateMemory(nil), good.Memories...)
		change(&bad)
		if x, err := TakeOver(&bad, nil, Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
			if err == nil {
				x.Close()
			}
		}
	}
}

// The lock of a folder passes with its descriptor: nobody else gets in between.
func TestFolderIsInherited(t *testing.T) {
	path := filepath.Join(testnet.BPFFS(t), "node")
	first, err := OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	next, err := InheritFolder(path, first.FD())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := RemoveFolder(path); !errors.Is(err, ErrOwned) {
		t.Errorf("removed while the next process has it: %v", err)
	}
	if _, err := InheritFolder(path, -1); err == nil {
		t.Error("inherited without a descriptor")
	}
	other := filepath.Join(filepath.Dir(path), "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := InheritFolder(other, next.FD()); err == nil || !strings.Contains(err.Error(), "another folder") {
		t.Errorf("inherited as another folder: %v", err)
	}
	if err := errors.Join(next.Remove(), next.Close()); err != nil {
		t.Error(err)
	}
}
