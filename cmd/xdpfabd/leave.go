// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
)

// Another daemon can take the place of this one, which is told so at the control socket:
//
//	next  ─ claim ──────────────▶  this one, which serves all the while
//	      ◀──────── verdict ─────  a refusal ends it here
//	      ─ verdict (go) ───────▶
//	      ◀─ verdicts (progress)   guests leave this one
//	      ◀─ verdict, handover ──  this one has closed the interface, or cannot
//	      ◀──────── memory ──────
//	      ─ verdicts (progress) ▶  the next one takes guests in
//	      ─ verdict ────────────▶  the next one has it, and holds still
//	      ◀──────── verdict ─────  from here on this one cannot come back
//	      ─ verdict ────────────▶  it serves
//
// If anything fails before the next one has read the last message but one, this daemon
// says so first, opens the handover itself and continues. The next one does nothing that
// peers could notice before it knows that this one will not continue: by that verdict,
// or, without one, by this one's death.

// legacy is what the daemon itself leaves to the next one, in addition to the domain's
// handover. File descriptors, in this order: a pidfd of the daemon, the control sockets,
// and the memfds of regions.
type legacy struct {
	Former  bool // the first file descriptor is a pidfd of this daemon
	Doors   []leftDoor
	Regions []legacyRegion
}

// Times of a takeover.
const (
	drainLimit = 20 * time.Second // for operations of guests to end, at most
	stepLimit  = 30 * time.Second // for any answer of the other daemon, once this node has stopped
	// openLimit is for the next daemon to open the interface with resident regions: the
	// kernel checks their XDP program, which takes a slow machine minutes. This one could
	// not go on meanwhile: the other has the queues.
	openLimit = 5 * time.Minute
	// askLimit is for the answers before that. While the former daemon serves, waiting
	// costs nothing, and the end of either process ends the connection at once. Both
	// sides may need long on a busy machine: one asks the kernel about the interface,
	// which waits for all who change interfaces, and the other fills memory with pages.
	askLimit = 2 * time.Minute
)

// drainTime is how long operations of guests are waited for: as long as they take that
// peers do not answer. The library lets other guests go on meanwhile.
func (c Config) drainTime() time.Duration { return min(max(c.GiveUp, 2*time.Second), drainLimit) }

// leaving is why a daemon stops serving: another one takes its place.
type leaving struct {
	conn  *net.UnixConn
	doors []leftDoor
	given []*region  // to the next daemon
	wants []legacyOf // that one's regions
	tells bool       // that one is told of progress
	h     *host.Handover
	err   error // why there is no handover
	since time.Time
}

func (*leaving) Error() string { return "another daemon takes this one's place" }

// claimed talks with a process that claims this daemon's place, while the daemon serves,
// and ends that if they agree.
func (s *server) claimed(ctx context.Context, conn *net.UnixConn, doors []door, end context.CancelCauseFunc) {
	_ = conn.SetDeadline(time.Now().Add(askLimit))
	var c claim
	if err := control.Hear(conn, &c); err != nil {
		s.brokenOff(ctx, err)
		return
	}
	// From here on no command changes the regions: the next daemon is told which.
	s.served.promise()
	defer s.served.release()
	given, v, err := s.agree(&c)
	if c.Looks {
		if err != nil {
			v = refusal(err)
		}
		_ = control.Tell(conn, v)
		return
	}
	if err != nil {
		s.log.Warn("takeover refused", "cause", err)
		_ = control.Tell(conn, refusal(err))
		return
	}
	if err = offer(conn, v); err != nil {
		s.brokenOff(ctx, err)
		return
	}
	to := &leaving{given: given, wants: c.Regions, tells: c.Progress}
	if to.conn, err = another(conn); err == nil {
		if to.doors, err = leaveDoors(doors); err != nil {
			_ = to.conn.Close()
		}
	}
	if err != nil {
		_ = control.Tell(conn, refusal(err))
		return
	}
	s.served.promise()                            // until this one comes back, if it does
	if end(to); context.Cause(ctx) != error(to) { // another claim was first, or this daemon ends
		_ = control.Tell(to.conn, refusal(errors.New("this daemon ends, or another one takes its place already")))
		s.served.release()
		to.close()
		return
	}
	s.log.Info("another daemon takes this one's place", "release", c.Release)
	for _, r := range s.served.all() {
		if !slices.Contains(given, r) {
			s.log.Warn("region ends here: the next daemon does not serve it", "region", r.Name, "size", r.Size)
		}
	}
}

// brokenOff logs that a claim came to nothing, which is so for all but one if several
// daemons claim this one's place.
func (s *server) brokenOff(ctx context.Context, err error) {
	if errors.As(context.Cause(ctx), new(*leaving)) {
		s.log.Info("another takeover was refused, since one is under way")
		return
	}
	s.log.Warn("takeover broken off: this daemon goes on serving", "cause", err)
}

// offer tells the next daemon what it will get, and returns when that one says go.
func offer(conn net.Conn, v verdict) error {
	_ = conn.SetDeadline(time.Now().Add(askLimit))
	if err := control.Tell(conn, v); err != nil {
		return err
	}
	_, err := hear(conn)
	return err
}

// another returns another connection on the same socket.
func another(conn *net.UnixConn) (*net.UnixConn, error) {
	f, err := conn.File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// leave hands the domain over, if that is why the daemon stops serving.
func (s *server) leave(ctx context.Context) {
	to := new(leaving)
	if ctx.Err() == nil || !errors.As(context.Cause(ctx), &to) {
		return
	}
	s.leaves.Store(true)
	to.since = time.Now()
	x, fds := legacy{Doors: to.doors}, []int{}
	if own, err := unix.PidfdOpen(os.Getpid(), 0); err == nil {
		defer unix.Close(own) // the handover has a copy
		x.Former, fds = true, append(fds, own)
	}
	for _, d := range to.doors {
		fds = append(fds, d.FD)
	}
	for _, r := range s.served.all() {
		x.Regions = append(x.Regions, legacyRegion{r.Name, r.reg.Key(), r.reg.Incarnation()})
	}
	for _, r := range to.given {
		if r.Backing == backingMemfd {
			fds = append(fds, r.mem.FD())
		}
	}
	text, err := json.Marshal(x)
	if err == nil {
		if to.tells {
			s.progress.begin(to.conn)
		}
		to.h, err = s.host.HandOver(s.cfg.drainTime())
		s.progress.end()
	}
	if err == nil {
		err = to.h.Add(text, fds...)
	}
	to.err = err
}

// replaced gives the daemon's place to another one. If that fails, it returns the control
// sockets, and this one continues with them.
func (s *server) replaced(to *leaving) ([]door, error) {
	defer to.close()
	gone, err := s.give(to)
	if gone {
		s.keepSteering()
		return nil, err
	}
	_ = to.conn.SetDeadline(time.Now().Add(time.Second))
	_ = control.Tell(to.conn, refusal(err)) // so that it need not find out whether this daemon has died
	_ = to.conn.Close()                     // a next one that is merely slow gives the interface back at its next step
	s.log.Error("takeover failed: this daemon goes on serving", "cause", err)
	doors, err := s.comeBack(to)
	if err != nil {
		return nil, fmt.Errorf("going on after a takeover that failed: %w", err)
	}
	s.log.Info("this daemon continues")
	return doors, nil
}

// resides reports whether the next daemon opens with the program of resident regions: it
// has some, or takes back and ends those that this daemon has had.
func (to *leaving) resides() bool {
	return to.h.Resides() ||
		slices.ContainsFunc(to.wants, func(l legacyOf) bool { return l.Backing == backingResident }) ||
		slices.ContainsFunc(to.given, func(r *region) bool { return r.Backing == backingResident })
}

// opened waits until the next daemon has opened the interface, or its own regions.
func opened(conn net.Conn, resident bool, log *slog.Logger) (verdict, error) {
	limit := stepLimit
	if resident {
		limit = openLimit
	}
	w := waits{log, pidAt(conn), limit}
	defer w.begin()()
	v, err := hearLast(conn, limit)
	return v, w.explain(err)
}

// give gives the next daemon what it needs, and reports whether that one serves now.
// Otherwise this one has to go on.
func (s *server) give(to *leaving) (gone bool, err error) {
	step := func() { _ = to.conn.SetDeadline(time.Now().Add(stepLimit)) }
	if step(); to.err != nil {
		_ = control.Tell(to.conn, refusal(to.err))
		return false, to.err
	}
	if err := errors.Join(control.Tell(to.conn, verdict{}), to.h.Send(to.conn)); err != nil {
		return false, err
	}
	for _, r := range to.given {
		if step(); r.Backing != backingAnonymous {
			continue
		}
		if _, err := to.conn.Write(r.mem.Bytes()[:r.Size]); err != nil {
			return false, fmt.Errorf("region %q: %w", r.Name, err)
		}
	}
	v, err := opened(to.conn, to.resides(), s.log)
	if err != nil {
		return false, err
	}
	step()
	s.notify(fmt.Sprintf("MAINPID=%d", v.PID))
	unclaim(s.served.all())
	err = control.Tell(to.conn, verdict{})
	unread := err != nil
	if err == nil {
		_, err = opened(to.conn, to.resides(), s.log)
		unread = errors.Is(err, syscall.ECONNRESET) // what the kernel makes of an end before all is read
	}
	if unread {
		s.notify(fmt.Sprintf("MAINPID=%d", os.Getpid()))
		claimFiles(s.served.all(), nil, s.log)
		return false, err
	}
	if err != nil {
		return true,
			fmt.Errorf("the next daemon, process %d, has taken this one's place, but does not serve: %w", v.PID, err)
	}
	s.log.Info("the next daemon serves", "pid", v.PID, "took",
		time.Since(to.since).Round(100*time.Microsecond).String())
	return true, nil
}

// comeBack reopens what was to be handed over, and returns the control sockets.
func (s *server) comeBack(to *leaving) ([]door, error) {
	s.leaves.Store(false)
	defer s.served.release()
	for _, r := range s.served.all() {
		r.kept = true // what it logs from here on is no start
	}
	if to.h == nil { // guests find the daemon again by themselves
		if err := s.host.Node().End.Returned(); err != nil {
			return nil, err
		}
		return s.inheritDoors(to.doors)
	}
	to.h.Charge(s.rules.budgets)
	if err := s.reopen(context.Background(), to.h, s.host.Node().Dev.Info().Queues, s.host.Folder()); err != nil {
		return nil, err
	}
	s.host.Node().Resume()
	return s.inheritDoors(to.doors)
}

// close frees what a takeover needed.
func (to *leaving) close() {
	_ = to.conn.Close()
	closeLeft(to.doors)
	if to.h != nil {
		_ = to.h.Close()
	}
}
