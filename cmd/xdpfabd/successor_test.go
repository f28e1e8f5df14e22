// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A daemon that has everything serves if the former one is killed before it has said
// that it will not come back. If that one lives, or says that it goes on, the next one
// gives up.
func TestTakeoverOfOneThatDies(t *testing.T) {
	testnet.Require(t)
	was := burial
	t.Cleanup(func() { burial = was })
	for what, c := range map[string]struct{ dies, says, serves bool }{
		"it dies": {dies: true, serves: true}, "it hangs up": {}, "it goes on": {says: true},
	} {
		t.Run(what, func(t *testing.T) {
			if burial = testnet.Patience; !c.dies && !c.says {
				burial = 50 * time.Millisecond
			}
			pair := testnet.NewPair(t, testnet.Options{Queues: 1})
			f := newFormer(t, pair.A)
			process := exec.Command("sleep", "600") // in the place of the former daemon
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = process.Process.Kill()
				_ = process.Wait()
			})
			pidfd, err := unix.PidfdOpen(process.Process.Pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(pidfd)
			end, log, signal := f.takes(pair.A)
			conn := <-f.conn
			var x claim
			f.must(verdict{}, control.Hear(conn, &x))
			f.must(verdict{}, control.Tell(conn, verdict{Queues: 1}))
			f.must(hear(conn))
			h := f.leaveAs(conn, pidfd)
			defer h.Close()
			f.must(hear(conn)) // it has all
			if c.says {
				f.must(verdict{}, control.Tell(conn, verdict{Error: "no"}))
			}
			if c.dies {
				_ = process.Process.Kill()
			}
			_ = conn.CloseRead()
			_ = conn.CloseWrite()
			if c.serves {
				testnet.Eventually(t, "the next daemon serves", func() bool { return strings.Contains(log.String(), "msg=serving") })
				signal()
				if err := <-end; err != nil || !strings.Contains(log.String(), "former daemon died") {
					t.Errorf("%v, log: %s", err, log)
				}
				return
			}
			want := "shows which serves" // whether one that hung up continues is not known
			if c.says {
				want = "that daemon continues"
			}
			if err := <-end; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %s", err, want)
			}
			f.open(pair.A, func(o host.Options) (*host.Host, error) {
				return host.TakeOver(context.Background(), h, pair.A.IfName, o, nil, func(*host.Host) error { return nil })
			})
			f.host.Node().Resume()
			if err := f.host.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
