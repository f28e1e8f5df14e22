// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// refused waits for the end of a daemon that does not start, and for what it says.
func (p *process) refused(t *testing.T, want ...string) {
	t.Helper()
	code := p.code(t)
	said := strings.Join(strings.Fields(p.out.String()), " ") // without the folds of long lines
	for _, text := range want {
		if code != exitInterface || !strings.Contains(said, text) {
			t.Errorf("%d: %s; want %s", code, said, text)
		}
	}
}

// A daemon whose control socket was removed is named by its process, also if it has
// resident regions, whose folder a second daemon wants first.
func TestRefusedNamesTheProcess(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	pin, path := filepath.Join(testnet.BPFFS(t), "node"), socketPath(t)
	p := launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=4KiB:resident")
	p.ready(t)
	launch(t, net.B, socketPath(t), nil, "--pin", pin, "--region", "hot=4KiB:resident").
		refused(t, "has the folder; stop it, or name another folder")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	serves := fmt.Sprintf("process %d serves %s already, and its control socket, %s, was removed", p.cmd.Process.Pid,
		net.B.IfName, path)
	launch(t, net.B, path, nil, "--pin", pin, "--region", "hot=4KiB:resident").refused(t, serves)
	launch(t, net.B, path, nil, "--transport", "udp", "--region", "r=4KiB").refused(t, serves)
	launch(t, net.B, path, nil, "--region", "r=4KiB").refused(t, serves)
}

// A user without privileges who lets the daemon choose UDP sockets is told why a resident
// region cannot be had.
func TestResidentWithoutPrivileges(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	folder, err := os.MkdirTemp("", "xdpfab")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Chown(folder, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	p := launch(t, net.B, filepath.Join(folder, "c.sock"), []uintptr{}, "--transport", "auto", "--region", "hot=4KiB:resident")
	p.refused(t, `region "hot" is resident, which takes AF_XDP, and --transport auto has come to UDP sockets, because missing CAP_`)
}
