// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// hurry makes info wait for daemons a millisecond each.
func hurry(t *testing.T) {
	ask, probe := askLimit, probeLimit
	t.Cleanup(func() { askLimit, probeLimit = ask, probe })
	askLimit, probeLimit = time.Millisecond, time.Millisecond
}

// info names a daemon that does not answer, and what to do about it, beside all else that
// it knows.
func TestInfoSilentDaemon(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{})
	path, _ := testnet.StoppedDaemon(t)
	hurry(t)
	run := func(want int, args ...string) string {
		var out, errs bytes.Buffer
		code := 0
		err := pair.A.Do(func() error {
			code = (&app{in: strings.NewReader(""), out: &out, err: &errs}).run(context.Background(), append([]string{"info", "--control", path}, args...))
			return nil
		})
		if err != nil || code != want {
			t.Fatalf("%v: code %d, want %d, %v, %s", args, code, want, err, errs.String())
		}
		return out.String() + strings.ReplaceAll(errs.String(), "\n  ", " ")
	}
	say := "the daemon at " + path + " has not answered within 1ms: "
	if out := run(exitOK); !strings.Contains(out, pair.A.IfName) || !strings.Contains(out, "unknown: "+say) {
		t.Error(out)
	}
	if out := run(exitOK, pair.A.IfName); !strings.Contains(out, "nobody that answers: "+say) || !strings.Contains(out, "restart it") {
		t.Error(out)
	}
	if out := run(exitUnreachable, "--probe", pair.A.IfName); !strings.Contains(out, say) {
		t.Error(out)
	}
	var r infoReport
	if err := json.Unmarshal([]byte(run(exitOK, "--json", pair.A.IfName)), &r); err != nil || !strings.Contains(r.Interfaces[0].Silent, say) || r.Interfaces[0].Daemon != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// The error of an interface that there is not names those that daemons serve.
func TestNoInterfaceToAsk(t *testing.T) {
	path, _ := testnet.StoppedDaemon(t)
	dir := t.TempDir()
	if err := errors.Join(os.Symlink(path, filepath.Join(dir, "vb.sock")), os.WriteFile(filepath.Join(dir, "dead.sock"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"vx":      `no such interface "vx": daemons serve vb`,
		"absent0": `no such interface "absent0": daemons serve vb`,
	} {
		if err := absent(name, filepath.Join(dir, "*.sock")); err.Error() != want || exitCode(err) != exitInterface {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := absent("vx", filepath.Join(dir, "none", "*.sock")); err.Error() != `no such interface "vx": no daemon serves any: start xdpfabd` {
		t.Error(err)
	}
}

// The daemons of interfaces are asked side by side: here each hangs up on those that ask
// only once all have been asked.
func TestDaemonsOf(t *testing.T) {
	path, l := testnet.StoppedDaemon(t)
	list := []nic.Interface{{Name: "a0"}, {Name: "b0"}, {Name: "c0"}}
	var asked sync.WaitGroup
	asked.Go(func() {
		var conns []net.Conn
		for len(conns) < 2*len(list) { // each first looks whether there is a daemon
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
		}
		for _, c := range conns {
			_ = c.Close()
		}
	})
	defer asked.Wait()
	defer l.Close()
	limit := askLimit
	defer func() { askLimit = limit }()
	askLimit = testnet.Patience
	for n, s := range daemonsOf(t.Context(), list, path) {
		if s.status != nil || s.err != nil {
			t.Errorf("%s: %+v", list[n].Name, s)
		}
	}
}
