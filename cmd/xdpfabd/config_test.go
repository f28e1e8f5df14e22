// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xsk"
)

// check parses and validates, as load does with a file and no flags.
func check(text string) (Config, error) {
	c := defaultConfig()
	f, err := parseFile("x.toml", text, &c)
	if err == nil {
		err = f.errors(c.validate())
	}
	return c, err
}

func ptr[T any](v T) *T { return &v }

func TestFullFile(t *testing.T) {
	got, err := check(`
interface = "ens1f0np0"
queues = 2
cores = [0,
  1] # two lines
spin = "1ms"
busy-poll = "20us"
busy-budget = 16
copy = "zero-copy"
xdp = "any"
udp = true
window = 8
give-up = "2s"
rto-min = "20ms"
base-rtt = "1ms"
idle-retire = "2m"
control = "/tmp/c.sock"
socket-group = "7"
socket-mode = "0666"
log-level = "debug"
log-format = "json"
sessions = 100
resident-sessions = 64
pin = "/sys/fs/bpf/node"
leave = true
[[region]]
name = "a"
size = 4096
key = 7
access = "read"
huge = "never"
[[region]]
name = "b"
size = "2MiB"
key = "0xffffffffffffffff"
access = "write"
backing = "memfd"
[[region]]
name = "c"
backing = "./c"
[[region]]
name = "d"
size = 8
backing = "resident"
[[guest]]
user = "1"
deny = true
[[guest]]
user = "2"
entries = 64
`)
	want := Config{
		Interface: "ens1f0np0", Queues: 2, Cores: []int{0, 1}, Spin: time.Millisecond, BusyPoll: 20 * time.Microsecond, BusyBudget: 16, Copy: xsk.ZeroCopy,
		XDP: bpf.Any, UDP: true, Window: 8, GiveUp: 2 * time.Second, RTOMin: 20 * time.Millisecond,
		BaseRTT: time.Millisecond, IdleRetire: 2 * time.Minute, Control: "/tmp/c.sock", LogLevel: -4, LogFormat: logJSON,
		SocketGroup: "7", SocketMode: 0o666, Sessions: 100, ResidentSessions: 64, Pin: "/sys/fs/bpf/node", Leave: true,
		Guests: []GuestConfig{{User: "1", Deny: true, Serve: "*"}, {User: "2", Serve: "*", Limits: host.GuestLimits{Entries: 64}}},
		Regions: []RegionConfig{
			{Name: "a", Size: 4096, Key: ptr(uint64(7)), Access: mr.RemoteRead, Backing: "anonymous", Huge: mr.HugeNever},
			{Name: "b", Size: 2 << 20, Key: ptr(^uint64(0)), Access: mr.RemoteWrite, Backing: "memfd"},
			{Name: "c", Access: mr.RemoteRead | mr.RemoteWrite, Backing: "./c"},
			{Name: "d", Size: 8, Access: mr.RemoteRead | mr.RemoteWrite, Backing: "resident"},
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
	if attr := got.options(nil, ""); attr.BusyPoll != (xsk.BusyPoll{Time: 20 * time.Microsecond, Budget: 16}) || attr.Remember != "/tmp/c.napi" {
		t.Errorf("busy polling: %+v", attr)
	} else if attr.Window != 8 || attr.Copy != xsk.ZeroCopy || !attr.UDP || attr.RTOMin != 20*time.Millisecond || attr.BaseRTT != time.Millisecond || attr.Sessions != 100 || attr.ResidentSessions != 64 {
		t.Errorf("domain attributes: %+v", attr)
	}
}

func TestExampleFile(t *testing.T) {
	text, err := os.ReadFile("xdpfabd.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := check(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Regions) != 3 || c.Regions[1].Size != 1<<20 || *c.Regions[1].Key != 0xc0ffee {
		t.Errorf("regions %+v", c.Regions)
	}
	if len(c.Guests) != 2 || !c.Guests[0].Deny || c.Guests[1].Deny || c.Guests[1].Limits.Memory != 16<<30 {
		t.Errorf("guests %v", c.Guests)
	}
	if len(c.Sockets) != 1 || c.Sockets[0].Mode != 0o666 || c.Guests[1].Socket != c.Sockets[0].Path {
		t.Errorf("sockets %+v", c.Sockets)
	}
	c.Regions, c.Guests, c.Sockets, c.Interface = nil, nil, nil, ""
	if !reflect.DeepEqual(c, defaultConfig()) {
		t.Errorf("the example says that it shows the defaults\n got %+v\nwant %+v", c, defaultConfig())
	}
	for _, o := range options {
		if !strings.Contains(string(text), "\n"+o.key+" = ") {
			t.Errorf("%s is missing in the example", o.key)
		}
	}
	for _, o := range guestOptions {
		if !strings.Contains(string(text), "\n"+o.key+" = ") {
			t.Errorf("%s of a guest is missing in the example", o.key)
		}
	}
}

// No text makes the parser panic or hang; each error names a line or a key; a
// configuration that is accepted prints as text that means the same.
func FuzzConfig(f *testing.F) {
	text, err := os.ReadFile("xdpfabd.example.toml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	for _, c := range wrongFiles {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tell.Locate(text)
		c, err := check(text)
		if err != nil {
			for _, e := range flatten(err) {
				if !strings.Contains(e.Error(), ": ") {
					t.Errorf("error without a place: %v", e)
				}
			}
			return
		}
		var out bytes.Buffer
		if err := c.print(&out); err != nil {
			t.Fatalf("print: %v", err)
		}
		again, err := check(out.String())
		c.Control = c.controlPath()
		for i, g := range c.Guests {
			g = g.effective()
			g.Limits.Attach, g.Limits.Rule, g.Limits.Attached, g.Limits.Serves = 0, "", nil, nil // which no text has
			c.Guests[i] = g
		}
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%v\nprinted %s\n got %+v\nwant %+v", err, out.String(), again, c)
		}
	})
}

func flatten(err error) []error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		return many.Unwrap()
	}
	return []error{err}
}

// Paths mean the same to this daemon, to programs and to a next daemon.
func TestPathsAreResolved(t *testing.T) {
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	c, code, msg := load(t, "--interface=e", "--control=c", "--socket=./s", "--guest=allow:socket=s", "--guest=allow:socket=c",
		"--region=a=:backing=../f", "--region=b=1:memfd")
	if code != exitOK {
		t.Fatal(msg)
	}
	got := []string{c.Control, c.Sockets[0].Path, c.Guests[0].Socket, c.Guests[1].Socket, c.Regions[0].Backing, c.Regions[1].Backing}
	want := []string{at + "/c", at + "/s", at + "/s", at + "/c", filepath.Dir(at) + "/f", backingMemfd}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
