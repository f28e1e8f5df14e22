// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A check says what a start would do with the files of regions, and changes none.
func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, size := range map[string]int{"empty": 0, "short": 5, "whole": 4096, "long": 1 << 20} {
		if err := os.WriteFile(at(name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for region, want := range map[string]string{
		"a=4KiB:backing=" + at("new"):       `region "a": makes the file ` + at("new") + ", with zeros",
		"a=4KiB:backing=" + at("empty"):     `region "a": makes the empty file ` + at("empty") + " longer, with zeros",
		"a=4KiB:backing=" + at("short"):     `region "a": makes the file ` + at("short") + " longer, from 5 to 4096 bytes",
		"a=4KiB:backing=" + at("whole"):     `region "a": goes on with the contents of the file ` + at("whole"),
		"a=4KiB:backing=" + at("long"):      `region "a": has the first 4096 of the 1048576 bytes of the file`,
		"a=:backing=" + at("long"):          `region "a": goes on with the contents`,
		"a=:backing=" + at("new"):           "!" + at("new") + ": no such file or directory; name a file that is there, or give",
		"a=:backing=" + at("empty"):         "!has 0 bytes; give the region a size",
		"a=4KiB:backing=" + at("no/new"):    "!no folder " + at("no") + " for its file: make the folder, or name another",
		"a=4KiB:backing=" + dir:             "!is not a regular file; name a regular file on a disk",
		"a=64TiB:backing=" + at("enormous"): "!enormous needs 70368744177664 more bytes",
	} {
		var out bytes.Buffer
		code := run([]string{"--interface=e", "--control=" + at("c.sock"), "--region", region, "--check"}, &out, &out)
		refusal, refused := strings.CutPrefix(want, "!")
		if refused != (code == exitUsage) || !refused && code != exitOK || !strings.Contains(out.String(), refusal) {
			t.Errorf("%s: %d, %s; want %s", region, code, out.String(), want)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 4 {
		t.Errorf("the checks have made a file: %v", files)
	}
}

// Whatever is wrong with regions, rules and sockets is told at once, wherever it stands,
// and a check tells what is wrong with their files in the same breath.
func TestCheckTellsAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.toml")
	tell := func(text string, args, want []string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code := run(append([]string{"--config", path, "--control", path + ".sock", "--check"}, args...), &out, &out)
		said := strings.Join(strings.Fields(out.String()), " ")
		for _, w := range want {
			if code != exitUsage || !strings.Contains(said, w) {
				t.Errorf("code %d: %s lacks %q", code, said, w)
			}
		}
	}
	tell("interface = 7\n[[region]]\nsize = \"4KB\"\n",
		[]string{"--region", "a=4KB", "--region", "b=4KiB:r0", "--guest", "alow", "--socket", "/s:mode=9"},
		[]string{path + ":1: interface", path + ":3: region[0].size", "--region a=4KB: size", "--region b=4KiB:r0: ", `"alow"`,
			"--socket /s:mode=9: "})
	tell("interface = \"e\"\n[[region]]\nname = \"a\"\n[[region]]\nname = \"b\"\nsize = 1\nbacking = \"/no/b\"\n",
		[]string{"--region", "c=4KiB:backing=/no/c"}, []string{path + ":2: region[0].size", path + ":7: region[1].backing: no folder /no",
			"--region c: backing: no folder /no"})
}

// A check refuses more memory than the machine has, and files where nothing can be
// written.
func TestCheckMachine(t *testing.T) {
	c := Config{Regions: []RegionConfig{{Name: "a", Size: 3 << 20, Backing: backingAnonymous},
		{Name: "f", Size: 1 << 40, Backing: "/file"}, {Name: "b", Size: 1 << 20, Backing: backingResident}}}
	if err := c.fitsMachine(4 << 20); err != nil {
		t.Error(err)
	}
	if err := c.fitsMachine(4<<20 - 1); err == nil || !strings.Contains(err.Error(), "(a, b) take 4194304 bytes") {
		t.Errorf("%v", err)
	}
	var out bytes.Buffer
	args := []string{"--interface=e", "--control=" + socketPath(t), "--region=a=64TiB", "--region=r=4KiB:backing=/proc/x", "--check"}
	code := run(args, &out, &out)
	said := strings.Join(strings.Fields(out.String()), " ")
	if code != exitUsage || !strings.Contains(said, "(a) take 70368744177664 bytes, and this machine has") {
		t.Errorf("code %d: %s", code, said)
	}
	testnet.Require(t)
	dir := t.TempDir()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its mounts
		err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
			unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, ""))
		if err == nil {
			_, err = RegionConfig{Name: "r", Size: 4096, Backing: filepath.Join(dir, "new")}.previewFile()
		}
		done <- err
	}()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "read-only file system: name a file on another") {
		t.Errorf("%v", err)
	}
}

// A check says which regions that a former daemon has left go on and which end, and what
// a takeover would do, and has done, with those of the daemon that serves.
func TestCheckWhatIsThere(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	pin := filepath.Join(testnet.BPFFS(t), "node")
	path := socketPath(t)
	p := launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=4KiB:resident", "--region", "cold=4KiB:resident",
		"--region", "r=4KiB")
	s := p.ready(t)
	check := func(code int, want ...string) {
		t.Helper()
		c := launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=4KiB:resident", "--region", "r=8KiB", "--check")
		if got := c.code(t); got != code {
			t.Errorf("code %d, want %d: %s", got, code, c.out.String())
		}
		for _, text := range want {
			if out := strings.Join(strings.Fields(c.out.String()), " "); !strings.Contains(out, text) {
				t.Errorf("%s lacks %q", out, text)
			}
		}
	}
	check(exitOK, "a start is refused while it runs", `region "cold" of process `, "it ends with that process",
		`region "r" has 4096 bytes and access [read write] in process `)
	for region, want := range map[string]string{"r=4KiB:memfd": "has backing anonymous in process", "r=4KiB:key=1": "has key 0x",
		"r=4KiB:backing=" + path + ".r": "has backing anonymous in process"} {
		c := launch(t, net.B, path, nil, "--pin", pin, "--region", region, "--check")
		if code := c.code(t); code != exitOK || !strings.Contains(c.out.String(), want) {
			t.Errorf("%s: code %d: %s; want %s", region, code, c.out.String(), want)
		}
	}
	for _, is := range s.Regions {
		if is.Name != "r" {
			continue
		}
		c := launch(t, net.B, path, nil, "--pin", pin, "--region", "r=4KiB:key="+is.Key, "--check")
		if code := c.code(t); code != exitOK || strings.Contains(c.out.String(), "a takeover is refused") {
			t.Errorf("code %d: %s", code, c.out.String())
		}
	}
	p.signal(t, unix.SIGSTOP)
	check(exitOK, "a start is refused, and so is a takeover: ", "it is stopped (process ")
	p.signal(t, unix.SIGCONT)
	former := p
	p = launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=4KiB:resident", "--region", "cold=4KiB:resident",
		"--region", "fresh=4KiB", "--takeover")
	p.ready(t)
	if code := former.code(t); code != exitOK {
		t.Errorf("the former daemon: %d", code)
	}
	p.said(t, "regions_kept=2 regions_new=1 regions_ended=1 guests=0")
	p.said(t, "region=r")
	p.signal(t, unix.SIGKILL)
	p.code(t)
	check(exitOK, `region "hot": goes on with what a former daemon has left in `+pin, `region "cold": goes on with what a `+
		`former daemon has left in `+pin+", though the configuration does not name it: add --region cold=4KiB:resident, ",
		"`xdpfab region remove cold`")
	c := launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=4KiB:resident", "--region", "cold=4KiB:resident", "--check")
	if code := c.code(t); code != exitOK || strings.Count(c.out.String(), "goes on with what a former daemon has left in "+pin) != 2 {
		t.Errorf("%d: %s", code, c.out.String())
	}
	c = launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=8KiB:resident", "--check")
	if code := c.code(t); code != exitUsage || strings.Count(c.out.String(), "would destroy its contents") != 1 {
		t.Errorf("%d: %s", code, c.out.String())
	}
	lock, err := os.Open(pin)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX) // as `xdpfab resident list` does for a moment
	}
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = lock.Close() })
	p = launch(t, net.B, path, nil, "--pin", pin, "--region", "hoot=4KiB:resident") // each goes on, and is told
	p.ready(t)
	p.said(t, "region name=hot ") // the last one
	p.said(t, "does not name it\" region=cold remedy=\"add --region cold=4KiB:resident, or end it with `xdpfab region remove cold`")
	p.said(t, "does not name it\" region=hot remedy=\"add --region hot=4KiB:resident")
	if out := p.out.String(); strings.Count(out, "contents=kept") != 2 {
		t.Error(out)
	}
	p.signal(t, unix.SIGKILL)
	p.code(t)
	p = launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=4KiB:resident", "--region", "cold=4KiB:resident,ro")
	p.ready(t)
	p.said(t, "region name=hoot ")                  // the last one
	p.said(t, `peers look it up anew" region=cold`) // it has other rights now
	out := p.out.String()
	if strings.Count(out, "contents=kept") != 3 || strings.Contains(out, "lost") {
		t.Error(out)
	}
	p.signal(t, unix.SIGTERM)
	p.code(t)
}
