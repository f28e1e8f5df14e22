// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// discarded checks that nothing of regions and memories is left behind, whatever the
// process before was doing when it died.
func discarded(t *testing.T, folder string, x *Executor) {
	t.Helper()
	if err := x.Sweep(nil); err != nil {
		t.Fatal(err)
	}
	if err := each(x.book, namesMap, func(key uint64) { t.Errorf("the name of key %d is left", key) }); err != nil {
		t.Error(err)
	}
	for place := range x.objects.Memories.MaxEntries() {
		var id uint32
		if err := x.objects.Memories.Lookup(place, &id); err == nil {
			t.Errorf("the memory at place %d is left", place)
		}
	}
	if n := len(x.places); n != int(x.objects.Memories.MaxEntries()) {
		t.Errorf("%d places are free", n)
	}
	entries, err := os.ReadDir(filepath.Join(folder, version))
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), memoryPin) {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// A process dies while it replaces a registration that it has found, after any number of
// steps. The next one finds the former registration, or the new one, or none, and never
// one that is written down as another.
func TestReplaceIsStopped(t *testing.T) {
	mustExecute(t)
	const key = 1
	seen := map[string]bool{}
	for stop := range 7 {
		t.Run(fmt.Sprint(stop), func(t *testing.T) {
			folder := testnet.BPFFS(t)
			first := left(t, folder, nil)
			old, _, err := first.NewMemory("old", 60)
			if err == nil {
				err = first.Register(old, Region{Key: key, Length: 8, Incarnation: 9, Access: RemoteRead})
			}
			if err != nil {
				t.Fatal(err)
			}
			dies, err := Adopt(folder, Config{})
			if err != nil {
				t.Fatal(err)
			}
			fresh, _, err := dies.NewMemory("new", 60)
			if err != nil {
				t.Fatal(err)
			}
			var r executorRegion
			if err := dies.objects.Regions.Lookup(uint64(key), &r); err != nil {
				t.Fatal(err)
			}
			as := Region{Key: key, Length: 8, Incarnation: 9, Access: RemoteRead} // it differs in its memory alone
			steps := slices.Concat(dies.removing(key, r.Place), dies.entering(fresh, &as, 0))
			for _, step := range steps[:stop] {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			next, err := Adopt(folder, Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer next.Close()
			regions, err := next.Regions()
			if err != nil {
				t.Fatal(err)
			}
			found, is := regions[key]
			if name := found.Name.Memory; is && (next.OnMemory(key, old) != (name == "old") || next.OnMemory(key, fresh) != (name == "new")) {
				t.Errorf("the region is said to be over %q, and is not", name)
			}
			seen[found.Name.Memory] = true
			if l := look(folder, version); len(l.Regions) != len(regions) || l.Trouble != "" {
				t.Errorf("listed as %+v, want %d regions", l, len(regions))
			}
			discarded(t, folder, next)
		})
	}
	for _, name := range []string{"old", "new", ""} {
		if !seen[name] {
			t.Errorf("no process has found %q: %v", name, seen)
		}
	}
}

// What is refused changes nothing, not even what is written down.
func TestRegisterIsRefused(t *testing.T) {
	folder := testnet.BPFFS(t)
	x := left(t, folder, nil)
	one, _, err := x.NewMemory("one", 8)
	if err == nil {
		err = x.Register(one, Region{Key: 1, Length: 8, Name: Name{Name: "first"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := x.NewMemory("other", 8)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Register(other, Region{Key: 1, Length: 8, Name: Name{Name: "second"}}); err == nil {
		t.Error("registered twice")
	}
	if regions, err := x.Regions(); err != nil || regions[1].Name != (Name{Memory: "one", Name: "first"}) || !x.OnMemory(1, one) || x.OnMemory(1, other) {
		t.Errorf("%+v, %v", regions, err)
	}
	if err := x.Deregister(1); err != nil {
		t.Fatal(err)
	}
	if x.OnMemory(1, one) {
		t.Error("a region that is gone is over its memory")
	}
}
