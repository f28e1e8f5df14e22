// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A check finds why the daemon that serves would refuse a takeover, and that one serves
// on. One that serves something else refuses the start.
func TestCheckAsksTheDaemon(t *testing.T) {
	net, dir := testnet.NewPair(t, testnet.Options{}), t.TempDir()
	path, file, key := socketPath(t), filepath.Join(dir, "ledger"), filepath.Join(dir, "key")
	newKey := func() {
		t.Helper()
		b := make([]byte, 32)
		_, _ = rand.Read(b)
		if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(b)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	newKey()
	flags := []string{"--pin", "none", "--region", "ledger=4KiB:backing=" + file, "--region", "hot=4KiB:resident,auth-key=" + key}
	p := launch(t, net.B, path, nil, flags...)
	p.ready(t)
	check := func(code int, want string, more ...string) {
		t.Helper()
		c := launch(t, net.B, path, nil, append(append([]string{}, flags...), append(more, "--check")...)...)
		if got := c.code(t); got != code || !strings.Contains(unfolded(c.out.String()), want) {
			t.Errorf("%v: code %d, want %d: %s; want %s", more, got, code, c.out.String(), want)
		}
	}
	refused := "a start is refused while it runs, and so is a takeover (`systemctl reload`): "
	check(exitOK, "a start is refused while it runs, and --takeover (`systemctl reload`) takes its place")
	check(exitOK, refused+"the daemon that serves has udp = true", "--udp=false")
	check(exitOK, refused+"--vlan is 5, and that daemon has untagged", "--vlan", "5")
	if err := os.Rename(file, file+".moved"); err != nil {
		t.Fatal(err)
	}
	check(exitOK, refused+`region "ledger": `+file+" is not the file that the daemon serves: no such file or directory; move that")
	if err := os.WriteFile(file, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	check(exitOK, refused+`region "ledger": `+file+" is not the file that the daemon serves: another file is there")
	if err := os.Rename(file+".moved", file); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	newKey()
	check(exitOK, refused+`region "hot" has its authorization key in the daemon that serves`)
	if err := os.WriteFile(key, old, 0o600); err != nil {
		t.Fatal(err)
	}
	check(exitUsage, "serves another interface, veth0, at "+path+": give this daemon a path of its own", "--interface", "veth7")
	c := launch(t, net.A, path, nil, "--region", "r=4KiB", "--check")
	if code := c.code(t); code != exitUsage || !strings.Contains(unfolded(c.out.String()), "the veth0 of another network namespace at") {
		t.Errorf("code %d: %s", code, c.out.String())
	}
	if out := p.out.String(); strings.Contains(out, "takeover") {
		t.Errorf("the daemon has been disturbed: %s", out)
	}
	next := launch(t, net.B, path, nil, append(flags, "--takeover")...)
	if next.ready(t); p.code(t) != exitOK {
		t.Error("the takeover is refused after all")
	}
}

// A check says that two regions have one file, whether that is there or not.
func TestCheckSharedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	other := filepath.Join(filepath.Dir(path), "link")
	if err := os.Symlink(path, other); err != nil {
		t.Fatal(err)
	}
	check := func(second string) {
		t.Helper()
		var out bytes.Buffer
		code := run([]string{"--interface=e", "--control=" + path + ".sock", "--region=a=4KiB:backing=" + path,
			"--region=b=4KiB:backing=" + second, "--check"}, &out, &out)
		if want := `region "b" has the file of region "a": they are the same memory`; code != exitOK || !strings.Contains(out.String(), want) {
			t.Errorf("%d, %s; want %s", code, out.String(), want)
		}
	}
	check(path)
	if err := os.WriteFile(path, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	check(path)
	check(other)
}
