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

// kept lists what a daemon keeps, kept remove asks for the region that is named, and stat
// shows it.
func TestKeptCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	k := control.Kept{KeptRegion: host.KeptRegion{Name: "counters", UID: 77, Bytes: 4096, Endpoints: []uint16{7, 9}}, User: "alice"}
	asked := make(chan control.Withdraw, 2)
	withdraw := control.Verb{Name: "withdraw", Do: func(ctx context.Context, arguments json.RawMessage) (any, error) {
		var w control.Withdraw
		err := json.Unmarshal(arguments, &w)
		asked <- w
		return k, err
	}}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	l, err := control.Listen(t.Context(), path, control.Access{})
	if err != nil {
		t.Fatal(err)
	}
	source := func() (control.Status, error) { return control.Status{Kept: []control.Kept{k}}, nil }
	go func() {
		served <- control.ServeListener(ctx, l, control.Service{Source: source, Verbs: []control.Verb{withdraw}})
	}()
	n := newNode(t)
	const line = "counters alice 4096 7 9 -"
	for _, args := range []string{"kept", "stat", "kept remove counters --user 77", "withdraw counters --user 77"} {
		r := n.run("", append(strings.Fields(args), "--control", path)...)
		if r.code != 0 || !strings.Contains(strings.Join(strings.Fields(r.out), " "), line) {
			t.Errorf("%s: %+v, want %s", args, r, line)
		}
	}
	for range 2 {
		if w := <-asked; w.Name != "counters" || w.UID == nil || *w.UID != 77 {
			t.Errorf("asked for %+v", w)
		}
	}
	if r := n.run("", "kept", "--json", "--control", path); !strings.Contains(r.out, `"endpoints":[7,9]`) {
		t.Errorf("%+v", r)
	}
	checkRefusal(t, "kept remove", n.run("", "kept", "remove", "counters", "--user", "xdpfab-nobody-has-this-name", "--control", path), exitUsage, "or a number")
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
