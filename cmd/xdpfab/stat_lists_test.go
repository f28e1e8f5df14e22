// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
)

// The lists show what a daemon has in the order asked for, say plainly that there is
// nothing, and refuse an order that they do not know.
func TestStatLists(t *testing.T) {
	full := control.RegionList{
		Regions: []control.Region{{Name: "small", Size: 8, Access: []string{"read", "write"}, Backing: "anonymous", Applied: control.Applied{Fetching: 9, FetchingBytes: 72}},
			{Name: "large", Size: 4096, Access: []string{"read"}, AuthKey: true, Backing: "memfd"},
			{Name: "hot", Size: 32, Access: []string{"read"}, Backing: "resident"}},
		Guests: []control.GuestRegion{{Guest: 815, Name: "box", Size: 64, Access: []string{"write"}, AuthKey: true, Applied: control.Applied{NonFetching: 10, NonFetchingBytes: 80}}},
		Total:  3,
	}
	queue := 2
	guests := []control.Guest{{AttachedGuest: host.AttachedGuest{GuestInfo: host.GuestInfo{PID: 7, UID: 1000, Memory: 1}}},
		{AttachedGuest: host.AttachedGuest{GuestInfo: host.GuestInfo{PID: 8, UID: 1000, Memory: 64, Endpoints: 1, Serving: 1, Peers: 2, Regions: 3, Taken: 4, Refused: 5, Completed: 6, Queue: &queue}}, User: "alice"}}
	peers := []host.PeerInfo{{Peer: "10.0.0.2", Role: "target", State: "open", Session: "0x0000003a", Sessions: 3, Resident: true}, {Peer: "10.0.0.3", State: "open", Ops: 5}}
	serve := func(path string, s control.Status, r control.RegionList, p []host.PeerInfo) (end func()) {
		ctx, cancel := context.WithCancel(context.Background())
		l, err := control.Listen(t.Context(), path, control.Access{})
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error)
		go func() {
			served <- control.ServeListener(ctx, l, control.Service{Source: func() (control.Status, error) { return s, nil },
				Verbs: append(control.PeersVerbs(func() []host.PeerInfo { return append([]host.PeerInfo{}, p...) }),
					control.Look("region-list", func() (control.RegionList, error) { return r, nil }))})
		}()
		return func() {
			cancel()
			if err := <-served; err != nil {
				t.Error(err)
			}
		}
	}
	path, empty := filepath.Join(t.TempDir(), "x.sock"), filepath.Join(t.TempDir(), "y.sock")
	defer serve(path, control.Status{Guests: guests}, full, peers)()
	none := control.Status{}
	none.Interface.Name = "eth7"
	defer serve(empty, none, control.RegionList{}, nil)()
	n := newNode(t)
	row := func(i int, args ...string) string {
		t.Helper()
		r := n.run("", append(append([]string{"stat"}, args...), "--control", path)...)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		if r.code != 0 || i >= len(lines) {
			t.Fatalf("%v: %+v", args, r)
		}
		return strings.Join(strings.Fields(lines[i]), " ")
	}
	for _, c := range []struct {
		args string
		row  int
		want string
	}{
		{"regions", 1, "small - 8 read write anonymous 9 72 0 0"},
		{"regions --sort size", 1, "large - 4096 read (key) memfd 0 0 0 0"},
		{"regions --sort ops", 1, "box 815 64 write (key) guest 0 0 10 80"},
		{"regions", 3, "hot - 32 read resident - - - -"},
		{"regions", 6, "2 further regions of programs are not listed"},
		{"guests", 1, "7 1000 0 0 0 0 1 0 0 0 -"},
		{"guests --sort memory", 1, "8 alice 1 1 2 3 64 4 5 6 2"},
		{"sessions", 1, "0x0000003a 10.0.0.2 target 0 open, resident 2 0 0 0 - 0s"},
		{"sessions --sort ops", 1, "10.0.0.3 0 open 0 5 0 0 - 0s"},
	} {
		if got := row(c.row, strings.Fields(c.args)...); got != c.want {
			t.Errorf("stat %s: %q, want %q", c.args, got, c.want)
		}
	}
	for line, want := range map[string]string{"stat peers": "no peers: no session is open", "kept": "no regions are kept; "} {
		if r := n.run("", append(strings.Fields(line), "--control", empty)...); r.code != 0 || !strings.HasPrefix(r.out, want) || strings.Count(r.out, "\n") != 1 {
			t.Errorf("empty: %s: %+v, want %q alone", line, r, want)
		}
	}
	if r := n.run("", "stat", "peers", "--skip", "9", "--control", path); r.out != "no peers behind 9: there are 2 in all\n" {
		t.Errorf("%+v", r)
	}
	for list, want := range map[string]string{"regions": "no regions: add one with", "guests": "no guests: no program has attached to the daemon of eth7",
		"sessions": "no sessions are open at present"} {
		if r := n.run("", "stat", list, "--control", empty); r.code != 0 || !strings.HasPrefix(r.out, want) {
			t.Errorf("empty: stat %s: %+v, want %q", list, r, want)
		}
		r := n.run("", "stat", list, "--control", empty, "--json")
		var v any
		if err := json.Unmarshal([]byte(r.out), &v); err != nil || strings.Contains(r.out, "null") {
			t.Errorf("empty: stat %s --json: %v, %q", list, err, r.out)
		}
		checkRefusal(t, "stat "+list+" --sort x", n.run("", "stat", list, "--sort", "x", "--control", path), exitUsage, `unknown order "x": want one of `)
	}
	r := n.run("", "stat", "regions", "--control", path, "--json")
	var rows []regionRow
	if err := json.Unmarshal([]byte(r.out), &rows); err != nil || len(rows) != 4 || *rows[3].Guest != 815 || rows[0].Guest != nil || rows[0].Applied.Fetching != 9 || rows[2].Applied != nil {
		t.Errorf("%v: %s", err, r.out)
	}
}
