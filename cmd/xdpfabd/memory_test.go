// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestAllocateAllOrNothing(t *testing.T) {
	good, _ := parseRegion("a=4096")
	bad, _ := parseRegion("b=:backing=/nonexistent/b")
	if mems, err := allocate([]RegionConfig{good, bad}); mems != nil || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `region "b"`) {
		t.Errorf("allocate: %v, %v", mems, err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/dev/null": "is not a regular file; name a regular file", "/etc/passwd/x": "; name a file in a folder", "/": "; name a file in it",
		empty: "; give it a size", "/nonexistent/a": "; name a file that is there",
	} {
		if _, err := (RegionConfig{Name: "r", Backing: path}).memory(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", path, err, want)
		}
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
	id, _, err := list[0].file()
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

// Two regions of one file are told apart from a file that another process serves.
func TestOneFileOfTwoRegions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	get := func(name, at string) *region {
		list, err := allocate([]RegionConfig{{Name: name, Size: 4096, Backing: at}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = free(list) })
		return list[0]
	}
	a, b, c, other := get("a", path), get("b", link), get("c", path), get("other", filepath.Join(dir, "other"))
	memfd := get("m", backingMemfd)
	for name, x := range map[string]struct {
		fresh, others []*region
		want          []string
	}{
		"of one configuration": {[]*region{a, memfd, b, other}, nil, []string{"region=b other=a file=" + link}},
		"added later":          {[]*region{c}, []*region{memfd, a, other}, []string{"region=c other=a file=" + path}},
		"of two files":         {[]*region{other}, []*region{a}, nil},
	} {
		var out bytes.Buffer
		claimFiles(x.fresh, x.others, slog.New(slog.NewTextHandler(&out, nil)))
		log := out.String()
		if strings.Count(log, "two regions have one file") != len(x.want) || strings.Contains(log, "another process") {
			t.Errorf("%s: %s", name, log)
		}
		for _, want := range x.want {
			if !strings.Contains(log, want) {
				t.Errorf("%s: %s; want %s", name, log, want)
			}
		}
	}
}

// A region that is the beginning of a file is a warning; one that is all its pages is
// not.
func TestFileLongerThanRegion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	for size, long := range map[int]bool{4000: true, 4096: true, 4097: false, 8192: false, 0: false} {
		list, err := allocate([]RegionConfig{{Name: "a", Size: size, Backing: path}})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		claimFiles(list, nil, slog.New(slog.NewTextHandler(&out, nil)))
		if got := strings.Contains(out.String(), "longer than its region"); got != long {
			t.Errorf("%d of 8192 bytes: %q", size, out.String())
		}
		if err := free(list); err != nil {
			t.Error(err)
		}
	}
}

// A file that a region makes longer is a warning, once; a new one is not.
func TestFileShorterThanRegion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, x := range []struct{ text, want, contents string }{
		{"abc", "file shorter than its region", "kept"}, {"", "file empty", "new"}, {"-", "", "new"},
	} {
		if err := os.WriteFile(path, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if x.text == "-" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 2 {
			list, err := allocate([]RegionConfig{{Name: "a", Size: 4096, Backing: path}})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			claimFiles(list, nil, slog.New(slog.NewTextHandler(&out, nil)))
			if i == 1 {
				x.want, x.contents = "", "kept"
			}
			if got := out.String(); (x.want != "") != (got != "") || !strings.Contains(got, x.want) || x.want != "" && !strings.Contains(got, fmt.Sprintf("was=%d", len(x.text))) {
				t.Errorf("%q, round %d: %q", x.text, i, got)
			}
			if got := list[0].contents(); got != x.contents {
				t.Errorf("%q, round %d: contents %s", x.text, i, got)
			}
			if err := free(list); err != nil {
				t.Error(err)
			}
		}
	}
}

// Too many open files have their limit and the remedy, whatever the daemon opens then.
func TestTooManyFiles(t *testing.T) {
	err := explainLimit(&exitError{code: exitInterface, err: fmt.Errorf("control socket: %w", unix.EMFILE)})
	if !strings.Contains(err.Error(), "too many open files: the limit is ") || !strings.Contains(err.Error(), "LimitNOFILE=") ||
		exitCode(err) != exitInterface {
		t.Errorf("%d, %v", exitCode(err), err)
	}
	if err := explainLimit(nil); err != nil {
		t.Error(err)
	}
}

// A daemon that cannot have resident memory says which region wants it, and why, and
// gives back what it has.
func TestServeWithoutResidence(t *testing.T) {
	cfg := testConfig(t)
	r, err := parseRegion("hot=4KiB:resident")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Regions = append(cfg.Regions, r)
	p := servePipe(t, cfg)
	select {
	case err = <-p.done:
	case <-limited(t).Done():
		t.Fatal("serve does not return")
	}
	if !errors.Is(err, xdpfab.ErrNotImplemented) || !strings.Contains(err.Error(), `resident memory "hot"`) {
		t.Errorf("serve: %v", err)
	}
}

// A file that is shortened while the daemon serves it ends the daemon, which says so.
func TestFileShortened(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	path := filepath.Join(t.TempDir(), "counters")
	p := launch(t, net.B, socketPath(t), nil, "--region", "counters=64KiB:backing="+path)
	addOnce(t, net.A, p.ready(t).Address)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := net.A.Do(func() error {
		dom, err := xdpfab.Open(limited(t), net.A.IfName, xdpfab.DomainAttr{GiveUp: time.Second})
		if err != nil {
			return err
		}
		defer dom.CloseAll()
		peer, err := dom.Dial(limited(t), net.B.MAC.String())
		if err != nil {
			return err
		}
		w, err := xdpfab.Word[uint64](limited(t), peer, "counters", 0)
		if err == nil {
			_, _ = w.Add(limited(t), 1) // gives up
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"level=ERROR", "region=counters", "file=" + path, "size=65536", "length=0",
		"another program shortened the file from 65536 to 0 bytes; restore the file"} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}
