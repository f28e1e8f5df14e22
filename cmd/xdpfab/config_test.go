// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/settings"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// What no flag says comes from the environment and the files; config shows it.
func TestConfig(t *testing.T) {
	n := newNode(t)
	file, absent := filepath.Join(t.TempDir(), "config.toml"), filepath.Join(t.TempDir(), "absent")
	if err := os.WriteFile(file, []byte("timeout = \"7m\"\ninterface = \"eth9\"\n[peers]\nnode7 = \""+peerAddr+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.files = []string{absent, file}
	n.env = func(name string) string { return map[string]string{"XDPFAB_INTERFACE": "pipe0"}[name] }
	if r := n.run("", "ping", "node7", "-c", "1", "-v"); r.code != exitOK || n.attr.GiveUp != 7*time.Minute || !strings.Contains(r.err, "which -i or the configuration names") {
		t.Errorf("%+v, %v", r, n.attr.GiveUp)
	}
	if r := n.run("", "ping", "node7", "-c", "1", "--timeout", "8m"); r.code != exitOK || n.attr.GiveUp != 8*time.Minute {
		t.Errorf("the flag: %+v, %v", r, n.attr.GiveUp)
	}
	checkRefusal(t, "flag -i", n.run("", "ping", "node7", "-i", "eth99"), exitInterface, "no such interface")
	r := n.run("", "config", "--json")
	var got configReport
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != exitOK {
		t.Fatalf("%v, %+v", err, r)
	}
	var from []string
	for _, v := range got.Settings {
		from = append(from, v.Key+" "+v.Value+" "+v.From)
	}
	want := []string{
		"interface pipe0 XDPFAB_INTERFACE", "control  default: the socket of the interface's daemon",
		"directory  default: none", "timeout 7m " + file,
		"auth-key-file  default: none", "transport auto default",
		"peers.node7 " + peerAddr + " " + file,
	}
	if !reflect.DeepEqual(from, want) || !reflect.DeepEqual(got.Files, []configFile{{absent, false}, {file, true}}) {
		t.Errorf("%q, %+v; want %q", from, got.Files, want)
	}
	if r := n.run("", "config"); r.code != exitOK || !strings.Contains(r.out, "is not there") {
		t.Errorf("%+v", r)
	}
	n.env = func(name string) string {
		return map[string]string{"XDPFAB_INTERFACE": "pipe0", "XDPFAB_TRANSPORT": "udp"}[name]
	}
	checkRefusal(t, "transport of the environment", n.run("", "ping", "node7"), exitUsage,
		"transport udp, which XDPFAB_TRANSPORT names: a MAC address is one of raw Ethernet; want the peer's IP address, or --transport xdp")
	if r := n.run("", "ping", "node7", "-c", "1", "--transport", "xdp"); r.code != exitOK || n.attr.Transport != fi.TransportXDP {
		t.Errorf("the flag: %+v, %v", r, n.attr.Transport)
	}
	checkRefusal(t, "an IP address", n.run("", "ping", "10.0.0.7"), exitInterface, "a domain in memory with Transport udp")
	for _, command := range []string{"config", "stat", "ping node7"} {
		if err := os.WriteFile(file, []byte("interfce = \"eth9\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		checkRefusal(t, command, n.run("", strings.Fields(command)...), exitUsage, "interfce: unknown key")
	}
	for key := range map[string]bool{settings.Interface: true, settings.Control: true, settings.Directory: true, settings.Timeout: true, settings.AuthKey: true, settings.Transport: true} {
		help := n.run("", "config", "--help").out
		if !strings.Contains(help, settings.Variable(key)) || !strings.Contains(help, "--"+key) {
			t.Errorf("help does not tell of %s", key)
		}
	}
}

// Settings of one rank that name a daemon and another interface than it has are refused:
// one of them would be ignored.
func TestContradiction(t *testing.T) {
	file := filepath.Join(t.TempDir(), "client.toml")
	if err := os.WriteFile(file, []byte("interface = 'eth8'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ifname, has string
		refused     bool
	}{
		{"eth7", "va", true}, {"va", "va", false},
		{"", "va", false}, // the variable takes precedence over the file
	} {
		a := &app{files: []string{file}, env: func(name string) string {
			return map[string]string{"XDPFAB_INTERFACE": c.ifname, "XDPFAB_CONTROL": "/d/x.sock"}[name]
		}}
		s, err := a.settings()
		if err != nil {
			t.Fatal(err)
		}
		err = contradiction(a.root(), s, c.has)
		const say = "XDPFAB_INTERFACE names the interface eth7, and the daemon at /d/x.sock, which XDPFAB_CONTROL names, has va: unset one of them"
		if (err != nil) != c.refused || c.refused && (exitCode(err) != exitUsage || !strings.Contains(err.Error(), say)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A user who may not look at resident regions is told who may.
func TestEntitled(t *testing.T) {
	err := entitled(fmt.Errorf("/x: %w", fs.ErrPermission))
	if exitCode(err) != exitInterface || !strings.Contains(err.Error(), "want root, or the user of the process that made the folder") {
		t.Error(err)
	}
	if err := entitled(fs.ErrNotExist); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "root") {
		t.Error(err)
	}
}
