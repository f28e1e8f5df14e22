// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// The daemon says at once, and at its end, that a region's file was removed or replaced.
// What it advises saves the contents.
func TestFileRemovedWhileServed(t *testing.T) {
	net, dir := testnet.NewPair(t, testnet.Options{}), t.TempDir()
	removed, replaced, kept := filepath.Join(dir, "counters"), filepath.Join(dir, "replaced"), filepath.Join(dir, "kept")
	p := launch(t, net.B, socketPath(t), nil, "--region", "counters=4KiB:backing="+removed,
		"--region", "b=4KiB:backing="+replaced, "--region", "c=4KiB:backing="+kept)
	addOnce(t, net.A, p.ready(t).Address)
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(replaced+".new", make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(replaced+".new", replaced); err != nil {
		t.Fatal(err)
	}
	p.said(t, "region=b file="+replaced+` cause="another file is there"`)
	p.said(t, "region=counters file="+removed+` cause="no file is there"`)
	command := regexp.MustCompile("`(cp /proc/[0-9]+/fd/[0-9]+ " + removed + ".saved)`").FindStringSubmatch(p.out.String())
	if command == nil {
		t.Fatal("no command copies the file")
	}
	if out, err := exec.Command("sh", "-c", command[1]).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command[1], err, out)
	}
	if saved, err := os.ReadFile(removed + ".saved"); err != nil || len(saved) != 4096 || saved[0] != 42 {
		t.Errorf("saved: %d bytes, %v", len(saved), err)
	}
	p.signal(t, unix.SIGTERM)
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, name := range []string{"counters", "b"} {
		want := fmt.Sprintf("level=ERROR msg=\"contents of a region are lost: its file was removed or replaced while this "+
			"daemon served it\" region=%s size=4096", name)
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	if text := p.out.String(); strings.Contains(text, kept+" cause") || strings.Count(text, "level=WARN") != 2 {
		t.Errorf("warnings: %s", text)
	}
}

// A file that is missed is warned of once, and once more if it is missed again.
func TestMissFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	list, err := allocate([]RegionConfig{{Name: "f", Size: 4096, Backing: path}, {Name: "a", Size: 8, Backing: backingMemfd}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = free(list) }()
	var out bytes.Buffer
	s := &server{log: slog.New(slog.NewTextHandler(&out, nil))}
	s.served.list = list
	missed := map[*region]bool{}
	look := func(times int) {
		t.Helper()
		s.missFiles(missed)
		if is := strings.Count(out.String(), "region=f"); is != times {
			t.Errorf("%d warnings, want %d: %s", is, times, out.String())
		}
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	claimFiles(list, nil, s.log)
	look(0)
	move(path, path+".moved")
	look(1)
	look(1)
	move(path+".moved", path)
	look(1)
	move(path, path+".moved")
	look(2)
}
