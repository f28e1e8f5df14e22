// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/version"
)

// connected returns the two ends of a connection.
func connected(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "connection")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ends[i] = c.(*net.UnixConn)
		_ = ends[i].SetDeadline(time.Now().Add(testnet.Patience))
	}
	return ends[0], ends[1]
}

// A claim that comes to nothing because another one was first is no trouble of the
// daemon's, which does not go on serving.
func TestSecondClaimIsRefused(t *testing.T) {
	var log lockedBuffer
	s := &server{log: slog.New(slog.NewTextHandler(&log, nil))}
	for cause, want := range map[error]string{&leaving{}: "another takeover was refused", errors.New("x"): "level=WARN"} {
		ctx, end := context.WithCancelCause(t.Context())
		conn, _ := connected(t)
		_ = conn.Close()
		end(cause)
		s.claimed(ctx, conn, nil, end)
		if !strings.Contains(log.String(), want) {
			t.Errorf("%v: %s", cause, log.String())
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

// As long as the former daemon serves, either may take long: the machine may be busy.
func TestTakeoverIsPatient(t *testing.T) {
	const long = 100 * time.Second
	synctest.Test(t, func(t *testing.T) {
		former, next := net.Pipe()
		defer former.Close()
		defer next.Close()
		var offered error
		var wg sync.WaitGroup
		wg.Go(func() {
			var c claim
			offered = control.Hear(former, &c)
			if time.Sleep(long); offered == nil {
				offered = offer(former, verdict{Queues: 1})
			}
		})
		if _, _, err := new(server).ask(next, claim{}); err != nil {
			t.Errorf("the former one takes %v to answer: %v", long, err)
			next.Close()
		}
		time.Sleep(long)
		_ = next.SetDeadline(time.Time{}) // as takeFrom renews it
		err := control.Tell(next, verdict{})
		if wg.Wait(); err != nil || offered != nil {
			t.Errorf("the next one takes %v to say go: %v, %v", long, err, offered)
		}
	})
}

// A daemon whose guests leave it slowly, one after the other, or that takes them in
// slowly, is waited for. One that stops in the middle is given up as soon as one that
// never begins.
func TestGuestsMayMoveSlowly(t *testing.T) {
	const guests, each = 40, 2 * time.Second
	talk, _ := connected(t)
	talk.Close() // the program has gone: it counts, too
	gone := func(s *server) { (&guest{s: s, log: s.log}).gone(time.Now(), nil) }
	stays := func(s *server) { _, _, _ = s.stay(talk) }
	handedOver := func(c net.Conn) error { _, err := hearLast(c, drainLimit+stepLimit); return err }
	hasAll := func(c net.Conn) error { _, err := opened(c, false, newLogger(Config{}, t.Output())); return err }
	for what, of := range map[string]struct {
		moves func(*server)
		wait  func(net.Conn) error
		limit time.Duration
	}{"they leave": {gone, handedOver, drainLimit + stepLimit}, "they are taken in": {stays, hasAll, stepLimit}} {
		for _, move := range []int{guests, guests / 2, 0} {
			synctest.Test(t, func(t *testing.T) {
				one, other := net.Pipe()
				defer one.Close()
				defer other.Close()
				s := &server{log: newLogger(Config{}, t.Output())}
				s.progress.begin(one)
				began := time.Now()
				var wg sync.WaitGroup
				wg.Go(func() {
					for range move {
						time.Sleep(each)
						of.moves(s)
					}
					if s.progress.end(); move == guests {
						_ = control.Tell(one, verdict{})
					}
					of.moves(s) // the handover comes next, and nothing between
				})
				err := of.wait(other)
				took, want := time.Since(began), time.Duration(move)*each
				if move != guests {
					want += of.limit
				}
				if (err == nil) != (move == guests) || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || took != want {
					t.Errorf("%s, %d of %d, one each %v: %v after %v; want %v", what, move, guests, each, err, took, want)
				}
				wg.Wait()
			})
		}
	}
}

// A daemon goes on if the next one dies before it has read that it may serve. If it has
// read it, it may have served, and neither can go on.
func TestGiveToOneThatDies(t *testing.T) {
	for name, reads := range map[string]bool{"before it reads": false, "then": true} {
		t.Run(name, func(t *testing.T) {
			own, next := connected(t)
			died := make(chan error, 1)
			go func() {
				_, _ = hear(next)
				_, _ = host.ReceiveHandover(next) // which has nothing
				err := control.Tell(next, verdict{PID: 1})
				head := make([]byte, 4)
				if err == nil && reads {
					_, err = hear(next)
				} else if err == nil { // it arrives, and lies there
					raw, _ := next.SyscallConn()
					_ = raw.Read(func(fd uintptr) bool {
						n, _, _ := unix.Recvfrom(int(fd), head, unix.MSG_PEEK|unix.MSG_DONTWAIT)
						return n == len(head)
					})
				}
				next.Close()
				died <- err
			}()
			s := &server{log: newLogger(Config{}, t.Output())}
			gone, err := s.give(&leaving{conn: own, h: &host.Handover{}})
			if ended := fmt.Sprintf("the next daemon, process %d, has ended: ", os.Getpid()); gone != reads || err == nil ||
				!strings.Contains(err.Error(), ended) {
				t.Errorf("gone: %t, %v; want %t, and %q", gone, err, reads, ended)
			}
			if err := <-died; err != nil {
				t.Error(err)
			}
		})
	}
}

// A daemon that cannot hand over after all says why.
func TestTakeoverRefusedLate(t *testing.T) {
	f := newFormer(t, nil)
	end, _, _ := f.takes(nil)
	conn := <-f.conn
	_ = conn.SetDeadline(time.Now().Add(testnet.Patience))
	var c claim
	f.must(verdict{}, control.Hear(conn, &c))
	f.must(verdict{}, control.Tell(conn, verdict{Queues: 1}))
	f.must(hear(conn))
	f.must(verdict{}, control.Tell(conn, verdict{Error: "another one was first"}))
	_ = conn.CloseWrite()
	if err := <-end; err == nil || !strings.Contains(err.Error(), "another one was first") {
		t.Errorf("%v; want what the other daemon says", err)
	}
}

// What two daemons say to each other is of the version of the handover, too; older ones
// go without answers that they do not know.
func TestTakeoverKeepsItsShape(t *testing.T) {
	const want = "3db16187ce48fd04"
	if got, lines := version.Shape(claim{}, verdict{}, legacy{}); got != want {
		t.Errorf("the shape is %s, was %s: raise host.HandoverVersion unless a daemon of before may pass over the "+
			"change, and note it here\n%s", got, want, lines)
	}
}

// A daemon whose handover is of another version, older or newer, is refused before
// anything stops.
func TestTakeoverOfAnotherVersion(t *testing.T) {
	s := &server{}
	for _, v := range []int{host.HandoverVersion - 1, host.HandoverVersion + 1} {
		want := fmt.Sprintf("hands over version %d, release old takes version %d: stop this daemon", host.HandoverVersion, v)
		if err := s.fits(&claim{Version: v, Release: "old"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d: %v, want %q", v, err, want)
		}
	}
}

// Whoever reads the log of a daemon that waits for the next one learns which process that
// is, and how to end it.
func TestWaitingNamesNextDaemon(t *testing.T) {
	own, _ := connected(t) // both ends are this process's
	log := &lockedBuffer{}
	waits{newLogger(Config{}, log), pidAt(own), stepLimit}.tell(3 * tellEach)
	want := fmt.Sprintf("level=WARN msg=\"next daemon has not answered yet: it opens the interface, or hangs\" pid=%d "+
		"waited=30s limit=30s remedy=\"kill -9 %[1]d ends it\"", os.Getpid())
	if !strings.Contains(log.String(), want) {
		t.Errorf("the log is\n%s\nwant\n%s", log, want)
	}
}

// A next daemon that the kernel keeps busy with the program of resident regions is waited
// for; without these it is taken for one that hangs.
func TestOpeningMayTakeLong(t *testing.T) {
	const long = 75 * time.Second // as seen in a virtual machine without KVM
	for _, resident := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			former, next := net.Pipe()
			defer former.Close()
			defer next.Close()
			var wg sync.WaitGroup
			wg.Go(func() {
				time.Sleep(long)
				_ = control.Tell(next, verdict{PID: 7})
			})
			log := &lockedBuffer{}
			v, err := opened(former, resident, newLogger(Config{}, log))
			says := strings.Split(strings.TrimSpace(log.String()), "\n")
			// the third may come with the end of the wait
			if n := map[bool]int{true: 7, false: 2}[resident]; len(says) != n && (resident || len(says) != n+1) {
				t.Errorf("resident %t: the log is\n%s\nwant a line each 10 s, %d", resident, log, n)
			}
			for i, line := range says {
				level := map[bool]string{true: "WARN", false: "INFO"}[i >= 2]
				if !strings.Contains(line, "level="+level) || !strings.Contains(line, fmt.Sprintf("waited=%v ", time.Duration(i+1)*tellEach)) {
					t.Errorf("line %d is %s, want level %s", i, line, level)
				}
			}
			if former.Close(); (err == nil) != resident || resident && v.PID != 7 {
				t.Errorf("resident %t: %+v, %v", resident, v, err)
			}
			wg.Wait()
		})
	}
	to := leaving{wants: []legacyOf{{Backing: backingMemfd}}}
	if to.resides() {
		t.Error("a memfd is taken for resident")
	}
	if to.wants[0].Backing = backingResident; !to.resides() {
		t.Error("a region that only the next daemon has resident")
	}
	if to = (leaving{given: []*region{{RegionConfig: RegionConfig{Backing: backingResident}}}}); !to.resides() {
		t.Error("a region that a command has added")
	}
}
