// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// former is a daemon whose place another one takes, step by step.
type former struct {
	t     *testing.T
	cfg   Config
	doors []door
	host  *host.Host // nil if the takeover does not come to that
	conn  chan *net.UnixConn
}

// newFormer makes a daemon that can be asked for its place, with an interface if there is
// a side to have one on.
func newFormer(t *testing.T, side *testnet.Side) *former {
	t.Helper()
	f := &former{t: t, cfg: defaultConfig(), conn: make(chan *net.UnixConn)}
	f.cfg.Interface, f.cfg.Control = "absent0", filepath.Join(t.TempDir(), "c.sock")
	if side != nil {
		f.cfg.Interface = side.IfName
		f.open(side, func(o host.Options) (*host.Host, error) {
			return host.Open(context.Background(), side.IfName, o)
		})
	}
	l, err := control.Listen(t.Context(), f.cfg.Control, control.Access{})
	if err != nil {
		t.Fatal(err)
	}
	f.doors = []door{{l, f.cfg.Control}}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	go func() {
		served <- control.ServeListener(ctx, l, control.Service{
			Source: func() (control.Status, error) {
				return control.Status{Interface: node.InterfaceInfo{UDP: true}}, nil
			},
			Takeover: f.asked(ctx),
		})
	}()
	return f
}

// asked passes connections of takeovers to the test.
func (f *former) asked(ctx context.Context) func(*net.UnixConn) {
	return func(c *net.UnixConn) {
		select {
		case f.conn <- c:
			<-ctx.Done()
		case <-ctx.Done():
		}
	}
}

// open opens the interface, now or again.
func (f *former) open(side *testnet.Side, by func(host.Options) (*host.Host, error)) {
	f.t.Helper()
	o := f.cfg.options(nil, "")
	if err := side.Do(func() (err error) { f.host, err = by(o); return err }); err != nil {
		f.t.Fatal(err)
	}
}

// leave hands over all that the daemon has.
func (f *former) leave(conn *net.UnixConn) *host.Handover { return f.leaveAs(conn) }

// leaveAs is leave of a daemon with a pidfd, if one is given.
func (f *former) leaveAs(conn *net.UnixConn, pidfd ...int) *host.Handover {
	f.t.Helper()
	left, err := leaveDoors(f.doors)
	if err != nil {
		f.t.Fatal(err)
	}
	defer closeLeft(left)
	text, err := json.Marshal(legacy{Former: len(pidfd) > 0, Doors: left})
	if err != nil {
		f.t.Fatal(err)
	}
	h, err := f.host.HandOver(drainLimit)
	if err == nil {
		err = h.Add(text, append(pidfd, left[0].FD)...)
	}
	if err == nil {
		err = errors.Join(control.Tell(conn, verdict{}), h.Send(conn))
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return h
}

// takes runs takeOver, and returns its end and what stands for a signal.
func (f *former) takes(side *testnet.Side) (end chan error, log *lockedBuffer, signal func()) {
	ctx, cancel := context.WithCancel(context.Background())
	end, log = make(chan error, 1), &lockedBuffer{}
	f.t.Cleanup(cancel)
	take := func() error { return takeOver(ctx, f.cfg, newLogger(f.cfg, log)) }
	go func() {
		if side == nil {
			end <- take()
			return
		}
		end <- side.Do(take)
	}()
	return end, log, cancel
}

// must fails the test unless a step of the protocol succeeds.
func (f *former) must(_ verdict, err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

const retreated = "takeover given up, since this daemon is asked to end: the other one continues"

// A daemon that is asked to end while it asks for another's place gives that up: it ends
// as on any request, says so in one line, and hangs up.
func TestTakeoverGivenUp(t *testing.T) {
	for _, at := range []string{"before the claim is answered", "before the handover"} {
		f := newFormer(t, nil)
		end, log, signal := f.takes(nil)
		conn := <-f.conn
		_ = conn.SetDeadline(time.Now().Add(testnet.Patience))
		var c claim
		f.must(verdict{}, control.Hear(conn, &c))
		if at == "before the handover" {
			f.must(verdict{}, control.Tell(conn, verdict{Queues: 1}))
			f.must(hear(conn))
		}
		signal()
		if err := <-end; err != nil || strings.Count(log.String(), retreated) != 1 || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%s: %v, log: %s", at, err, log)
		}
		if _, err := hear(conn); !errors.Is(err, io.EOF) {
			t.Errorf("%s: the other daemon hears %v", at, err)
		}
	}
}

// A daemon that cannot leave a step of the takeover when it is asked to end is ended; one
// that has left it is not.
func TestTakeoverGivenUpInAStep(t *testing.T) {
	was := closeLimit
	defer func() { closeLimit = was }()
	for _, leaves := range []bool{false, true} {
		conn, other := connection(t)
		ctx, signal := context.WithCancel(context.Background())
		exited := make(chan struct{}, 1)
		if closeLimit = time.Millisecond; leaves {
			closeLimit = testnet.Patience
		}
		back := retreatOf(ctx, conn, func() { exited <- struct{}{} })
		signal()
		if _, err := hear(other); !errors.Is(err, io.EOF) || !back.taken() {
			t.Errorf("the other daemon hears %v", err)
		}
		if !leaves {
			<-exited
		}
		back.end()
		if leaves && len(exited) > 0 {
			t.Error("the process is ended, though the takeover has ended")
		}
	}
}

// A signal that comes before anybody has answered is no failure either.
func TestTakeoverGivenUpAtOnce(t *testing.T) {
	f := newFormer(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	log := &lockedBuffer{}
	if err := takeOver(ctx, f.cfg, newLogger(f.cfg, log)); err != nil || !strings.Contains(log.String(), retreated) {
		t.Errorf("%v, log: %s", err, log)
	}
}

// While the next daemon opens the interface, it can still be asked to end: the former one
// goes on with what it wanted to hand over.
func TestTakeoverGivenUpLate(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{Queues: 1})
	f := newFormer(t, pair.A)
	end, log, signal := f.takes(pair.A)
	conn := <-f.conn
	var c claim
	f.must(verdict{}, control.Hear(conn, &c))
	f.must(verdict{}, control.Tell(conn, verdict{Queues: 1}))
	f.must(hear(conn))
	h := f.leave(conn)
	defer h.Close()
	signal()
	if err := <-end; err != nil || strings.Count(log.String(), retreated) != 1 {
		t.Errorf("%v, log: %s", err, log)
	}
	f.open(pair.A, func(o host.Options) (*host.Host, error) {
		return host.TakeOver(context.Background(), h, pair.A.IfName, o, nil, func(*host.Host) error { return nil })
	})
	f.host.Node().Resume()
	if err := f.host.Close(); err != nil {
		t.Error(err)
	}
}

// Once the next daemon has said that it has all, the former one may have ended, so a
// signal does not make the next one give up: it takes over, and then ends in order.
func TestTakeoverNoWayBack(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{Queues: 1})
	f := newFormer(t, pair.A)
	end, log, signal := f.takes(pair.A)
	conn := <-f.conn
	var c claim
	f.must(verdict{}, control.Hear(conn, &c))
	f.must(verdict{}, control.Tell(conn, verdict{Queues: 1}))
	f.must(hear(conn))
	h := f.leave(conn)
	defer h.Close()
	f.must(hear(conn)) // it has all
	signal()
	f.must(verdict{}, control.Tell(conn, verdict{}))
	f.must(hear(conn)) // it serves
	if err := <-end; err != nil || strings.Contains(log.String(), retreated) || !strings.Contains(log.String(), "closed") {
		t.Errorf("%v, log: %s", err, log)
	}
}
