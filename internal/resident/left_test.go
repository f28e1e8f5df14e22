// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A folder is one process's at a time, and of one version.
func TestFolder(t *testing.T) {
	root := testnet.BPFFS(t)
	path := filepath.Join(root, "a", "b")
	f, err := OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if f.Whole() {
		t.Error("an empty folder is whole")
	}
	if _, err := OpenFolder(path); !errors.Is(err, ErrOwned) || !strings.Contains(err.Error(), fmt.Sprintf("process %d (", os.Getpid())) {
		t.Errorf("opened twice: %v", err)
	}
	if err := RemoveFolder(path); !errors.Is(err, ErrOwned) {
		t.Errorf("removed while it is in use: %v", err)
	}
	if err := os.Mkdir(filepath.Join(path, "v0"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(path); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "has v0: which") ||
		!strings.Contains(err.Error(), "than "+version) || !strings.Contains(err.Error(), "xdpfab resident remove") {
		t.Errorf("opened the state of another version: %v; want both versions, and the remedy", err)
	}
	if err := RemoveFolder(path); err != nil {
		t.Error(err)
	}
	if err := RemoveFolder(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed what is not there: %v", err)
	}
	// A folder that belongs to others, or has those of several interfaces, is left alone.
	stranger := filepath.Join(root, "c", "eth0", version)
	if err := os.MkdirAll(stranger, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{root, filepath.Join(root, "c")} {
		if err := RemoveFolder(at); !errors.Is(err, ErrConfig) {
			t.Errorf("removed %s: %v", at, err)
		}
	}
	if _, err := os.Stat(stranger); err != nil {
		t.Error(err)
	}
	if err := RemoveFolder(filepath.Dir(stranger)); err != nil {
		t.Error(err)
	}
	if _, err := OpenFolder(filepath.Join(t.TempDir(), "a")); !errors.Is(err, ErrNoFileSystem) {
		t.Errorf("opened on another file system: %v", err)
	}
	if _, err := OpenFolder("a"); !errors.Is(err, ErrConfig) {
		t.Errorf("opened a relative path: %v", err)
	}
}

// left makes an executor that is pinned, and begins a session with a memo for each text.
func left(t *testing.T, folder string, key *session.Key, memos ...string) *Executor {
	t.Helper()
	x := mustLoad(t, Config{Sessions: 8, Regions: 4})
	if err := x.Pin(folder, Node{Life: 7, Interface: "eth9"}); err != nil {
		t.Fatal(err)
	}
	v, err := x.NewServer(nil, 1, func() int64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	for i, memo := range memos {
		p := killed
		p.Local, p.Key = killed.Local+wire.SessionID(i), key
		p.Memo = func() []byte { return []byte(memo) }
		if _, err := v.Begin(0, p); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// The next process finds memory by name and size, its registrations, and no other.
func TestMemoryIsFound(t *testing.T) {
	folder := testnet.BPFFS(t)
	first := left(t, folder, nil)
	m, found, err := first.NewMemory("hot.path", 60)
	if err != nil || found {
		t.Fatal(found, err)
	}
	if _, _, err := first.NewMemory("hot.path", 64); !errors.Is(err, ErrConfig) {
		t.Errorf("a second memory of the name: %v", err)
	}
	other, _, err := first.NewMemory("other", 8)
	if err != nil {
		t.Fatal(err)
	}
	m.Bytes()[0] = 5
	for key, m := range map[uint64]*Memory{1: m, 2: other} {
		if err := first.Register(m, Region{Key: key, Length: 8, Incarnation: 9, Access: RemoteRead, Name: Name{Name: "hot"}}); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	next, err := Adopt(folder, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if n := next.Node(); n.Life != 7 || n.Interface != "eth9" {
		t.Errorf("node %+v", n)
	}
	if again, found, err := next.NewMemory("hot.path", 64); err != nil || found {
		t.Errorf("memory of another size: %t, %v", found, err)
	} else {
		next.ReleaseMemory(again)
		_ = again.Close()
	}
	m, found, err = next.NewMemory("hot.path", 60)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	defer m.Close()
	if b := m.Bytes(); b[0] != 5 || len(b) != 60 {
		t.Errorf("%d bytes, the first %d; want 60, and 5", len(b), b[0])
	}
	if err := next.Sweep(map[uint64]struct{}{1: {}}); err != nil {
		t.Fatal(err)
	}
	regions, err := next.Regions()
	if r := regions[1]; err != nil || len(regions) != 1 || r.Incarnation != 9 || r.Name != (Name{Memory: "hot.path", Name: "hot"}) {
		t.Errorf("regions %+v, %v", regions, err)
	}
	if pins, _ := filepath.Glob(filepath.Join(folder, version, memoryPin+"*")); len(pins) != 1 {
		t.Errorf("memories %v, want that one", pins)
	}
}

// A session that was written down goes on, as it was agreed; any other is forgotten.
func TestSessionIsAdopted(t *testing.T) {
	folder := testnet.BPFFS(t)
	key := session.NewKey([]byte("secret"), 3)
	first := left(t, folder, key, "a", "b", "", "d")
	c := newCaller(first.objects.XdpfabCall)
	if _, _, err := c.call(callFreeze, uint32(killed.Local+1), 0, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.call(callEnd, uint32(killed.Local+3), 0, nil); err != nil {
		t.Fatal(err)
	}
	next, err := Adopt(folder, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	all, err := next.Sessions()
	if err != nil || len(all) != 2 {
		t.Fatalf("sessions %+v, %v", all, err)
	}
	for _, l := range all {
		if want := map[string]bool{"a": true, "b": false}; l.Live != want[string(l.Memo)] {
			t.Errorf("%+v", l)
		}
	}
	if n, err := count(next); n != 2 || err != nil || len(next.free) != 6 {
		t.Errorf("%d sessions are known, %v; %d places are free", n, err, len(next.free))
	}
	v, err := next.NewServer(nil, 1, func() int64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	p := killed
	p.MaxFrame = 9000 // not what was agreed
	if _, err := v.Adopt(0, p); !errors.Is(err, ErrConfig) {
		t.Errorf("adopted with another key: %v", err)
	}
	p.Key = session.NewKey([]byte("secret"), 11) // the number that this process has for it
	s, err := v.Adopt(0, p)
	if err != nil || s.p.MaxFrame != killed.MaxFrame || s.p.Window != killed.Window || s.Ran().PSN != session.FirstPSN(killed.Epoch)-1 {
		t.Fatalf("%+v, %v", s, err)
	}
	p.Epoch++
	if _, err := v.Adopt(0, p); !errors.Is(err, ErrDamaged) {
		t.Errorf("adopted another session: %v", err)
	}
	s.Release()
	if all, err := next.Sessions(); err != nil || len(all) != 1 {
		t.Errorf("after release: %+v, %v", all, err)
	}
}

// A state that lacks something is refused, and can be removed.
func TestDamagedState(t *testing.T) {
	for _, name := range append([]string{executorMapAnswers}, bookMaps...) {
		folder := testnet.BPFFS(t)
		left(t, folder, nil)
		if err := os.Remove(filepath.Join(folder, version, name)); err != nil {
			t.Fatal(err)
		}
		if x, err := Adopt(folder, Config{}); err == nil {
			x.Close()
			t.Errorf("adopted without %s", name)
		}
		if err := Remove(folder); err != nil {
			t.Error(err)
		}
	}
}

// An interface can have a name like that of a version. Its folder is no state for that.
func TestInterfaceNamedLikeAVersion(t *testing.T) {
	root := testnet.BPFFS(t)
	folder := filepath.Join(root, "ns", "v0")
	f, err := OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	x := left(t, folder, nil)
	if err := errors.Join(x.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{root, folder} {
		all, err := List(from)
		if err != nil || len(all) != 1 || all[0].Folder != folder || all[0].Interface != "eth9" {
			t.Errorf("from %s: %+v, %v", from, all, err)
		}
	}
	if err := RemoveFolder(filepath.Dir(folder)); !errors.Is(err, ErrConfig) {
		t.Errorf("the folder of all interfaces: %v", err)
	}
	if err := RemoveFolder(folder); err != nil {
		t.Error(err)
	}
}
