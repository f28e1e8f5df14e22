// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/mr"
)

func TestAllocateAllOrNothing(t *testing.T) {
	good, _ := parseRegion("a=4096")
	bad, _ := parseRegion("b=:backing=/nonexistent/b")
	if mems, err := allocate([]RegionConfig{good, bad}); mems != nil || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `region "b"`) {
		t.Errorf("allocate: %v, %v", mems, err)
	}
	dir, _ := parseRegion("d=:backing=/")
	if _, err := allocate([]RegionConfig{dir}); !errors.Is(err, mr.ErrMemory) {
		t.Errorf("a directory as backing: %v", err)
	}
}

// The next daemon serves a region in the former daemon's very file, or refuses.
func TestFileOfTakeover(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	c := RegionConfig{Name: "f", Size: 4096, Backing: path}
	list, err := allocate([]RegionConfig{c})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = free(list) }()
	id, err := list[0].file()
	if err != nil || id == (fileID{}) {
		t.Fatalf("%+v, %v", id, err)
	}
	expect := func(want string, files ...fileID) {
		t.Helper()
		s := &server{cfg: Config{Regions: []RegionConfig{c}}}
		_, err := s.expect([]legacyOf{c.legacy()}, files)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if err := free(s.served.all()); err != nil {
			t.Error(err)
		}
	}
	expect("", id)
	expect("") // of an older release
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	expect("no such file", id)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the refusal has made a file: %v", err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("another file is there", id)
	if st, err := os.Stat(path); err != nil || st.Size() != 5 {
		t.Errorf("the refusal has changed the other file: %+v, %v", st, err)
	}
	if err := os.Rename(path+".moved", path); err != nil {
		t.Fatal(err)
	}
	expect("", id)
}
