// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// sources makes one Memory of every kind, 8 KiB each.
func sources(t *testing.T) map[Kind]*Memory {
	t.Helper()
	const size = 8192
	path := filepath.Join(t.TempDir(), "region")
	ms := map[Kind]*Memory{}
	for kind, get := range map[Kind]func() (*Memory, error){
		KindAnonymous: func() (*Memory, error) { return Alloc(size, AllocOptions{Populate: true}) },
		KindMemfd:     func() (*Memory, error) { return Memfd("test", size) },
		KindFile:      func() (*Memory, error) { return File(path, size) },
		KindAdopted:   func() (*Memory, error) { return Adopt(make([]byte, size)) },
	} {
		m, err := get()
		if err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		ms[kind] = m
	}
	return ms
}

func TestMemoryLife(t *testing.T) {
	for kind, m := range sources(t) {
		t.Run(kind.String(), func(t *testing.T) {
			b := m.Bytes()
			if m.Kind() != kind || len(b) != 8192 || m.Pages() != PagesSmall {
				t.Fatalf("kind %v, %d bytes, %v pages", m.Kind(), len(b), m.Pages())
			}
			if hasFD := kind == KindMemfd || kind == KindFile; hasFD != (m.FD() >= 0) {
				t.Errorf("descriptor %d", m.FD())
			}
			for i, v := range b {
				if v != 0 {
					t.Fatalf("byte %d is %d", i, v)
				}
				b[i] = byte(i)
			}
			if err := m.Sync(); err != nil {
				t.Error(err)
			}
			tab := NewTable()
			r, err := tab.Register(m, Options{Name: "held"})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Close(); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), `"held"`) {
				t.Errorf("closed under a region: %v", err)
			}
			if m.Bytes() == nil {
				t.Fatal("a refused Close took the bytes")
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			for range 2 {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
			if m.Bytes() != nil {
				t.Error("a closed memory has bytes")
			}
			if err := m.Sync(); !errors.Is(err, ErrClosed) {
				t.Errorf("Sync after Close: %v", err)
			}
			if _, err := tab.Register(m, Options{}); !errors.Is(err, ErrClosed) || tab.count() != 0 {
				t.Errorf("registered a closed memory: %v", err)
			}
		})
	}
}

func TestSizes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	for name, err := range map[string]error{
		"alloc 0":        second(Alloc(0, AllocOptions{})),
		"alloc negative": second(Alloc(-1, AllocOptions{})),
		"alloc endless":  second(Alloc(1<<62, AllocOptions{})),
		"memfd 0":        second(Memfd("x", 0)),
		"file negative":  second(File(path, -1)),
		"adopt nothing":  second(Adopt(nil)),
	} {
		if !errors.Is(err, ErrSize) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := second(Alloc(1<<47, AllocOptions{})); !errors.Is(err, ErrMemory) || !errors.Is(err, unix.ENOMEM) {
		t.Errorf("the whole address space: %v", err)
	}
	if err := second(Memfd(strings.Repeat("x", 300), 1)); !errors.Is(err, ErrMemory) || !errors.Is(err, unix.EINVAL) {
		t.Errorf("memfd with a long name: %v", err)
	}
	m, err := Alloc(1, AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Bytes()) != os.Getpagesize() {
		t.Errorf("%d bytes, want a page", len(m.Bytes()))
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func second(_ *Memory, err error) error { return err }

// TestHuge holds with and without huge pages in the machine's pool: the reported sort of
// pages must agree with the kernel's description of the mapping, and every choice but
// HugeRequire must work.
func TestHuge(t *testing.T) {
	const size = HugePageSize + 1
	for _, o := range []AllocOptions{{}, {Populate: true}, {Huge: HugeNever}, {Huge: HugeNever, Populate: true},
		{Huge: HugeRequire}} {
		m, err := Alloc(size, o)
		if o.Huge == HugeRequire && err != nil {
			if !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "vm.nr_hugepages") {
				t.Errorf("%+v: %v", o, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		want := roundUp(size, os.Getpagesize())
		if m.Pages() == PagesHuge {
			want = roundUp(size, HugePageSize)
		}
		if len(m.Bytes()) != want || o.Huge == HugeNever && m.Pages() != PagesSmall ||
			o.Huge == HugeRequire && m.Pages() != PagesHuge {
			t.Errorf("%+v: %d bytes of %v pages", o, len(m.Bytes()), m.Pages())
		}
		if o.Populate && !resident(t, m.Bytes()) {
			t.Errorf("%+v: pages are missing", o)
		}
		m.Bytes()[size-1] = 1
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// resident reports whether every page of b is in memory.
func resident(t *testing.T, b []byte) bool {
	t.Helper()
	vec := make([]byte, len(b)/os.Getpagesize())
	if err := mincore(b, vec); err != nil {
		t.Fatalf("mincore: %v", err)
	}
	return bytes.Equal(vec, bytes.Repeat([]byte{1}, len(vec)))
}

func TestMemfdIsShared(t *testing.T) {
	m, err := Memfd("shared", 4096)
	if err != nil {
		t.Fatal(err)
	}
	other, err := mmap(m.FD(), 4096, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	other[77] = 7
	if m.Bytes()[77] != 7 {
		t.Error("a write through the descriptor is not seen")
	}
	for _, size := range []int64{0, 1 << 20} {
		if err := unix.Ftruncate(m.FD(), size); !errors.Is(err, unix.EPERM) {
			t.Errorf("truncated to %d bytes: %v", size, err)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if other[77] != 7 {
		t.Error("the other mapping is gone")
	}
	if err := unix.Munmap(other); err != nil {
		t.Error(err)
	}
}

func TestFilePersists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	open := func(size int) *Memory {
		m, err := File(path, size)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := open(5000)
	copy(m.Bytes()[4990:], "persistent")
	if err := errors.Join(m.Sync(), m.Close()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ size, want, onDisk int }{{0, 5000, 5000}, {100, 100, 5000}, {9000, 9000, 9000}} {
		m := open(tt.size)
		if len(m.Bytes()) != tt.want {
			t.Errorf("size %d: %d bytes, want %d", tt.size, len(m.Bytes()), tt.want)
		}
		if tt.want >= 5000 && string(m.Bytes()[4990:5000]) != "persistent" {
			t.Errorf("size %d: content is %q", tt.size, m.Bytes()[4990:5000])
		}
		if st, err := os.Stat(path); err != nil || int(st.Size()) != tt.onDisk {
			t.Errorf("size %d: file is %v, %v, want %d bytes", tt.size, st.Size(), err, tt.onDisk)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := second(File(path+".none", 0)); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, ErrMemory) {
		t.Errorf("all of a file that does not exist: %v", err)
	}
	if err := second(File("/dev/null", 4096)); !errors.Is(err, ErrMemory) {
		t.Errorf("a device: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := second(File(path, 0)); !errors.Is(err, ErrSize) {
		t.Errorf("all of an empty file: %v", err)
	}
}

// TestAdoptedSurvivesNeglect: a registration that is never closed must not make the
// runtime panic when the table is collected, as a lost pin would.
func TestAdoptedSurvivesNeglect(t *testing.T) {
	if _, err := NewTable().Register(adopt(t, 4096), Options{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC() // the finalizer of a lost Pinner would end the program here
	}
	held := 0
	pinned.Range(func(mem, _ any) bool {
		held++
		for r := range mem.(*Memory).regions {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if held != 1 {
		t.Errorf("%d pins are held, want the one", held)
	}
	pinned.Range(func(_, _ any) bool {
		t.Error("the pin outlives the region")
		return false
	})
}
