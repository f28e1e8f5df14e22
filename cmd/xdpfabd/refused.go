// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/nic"
	proc "github.com/xdpfab/xdpfab/internal/process"
	"github.com/xdpfab/xdpfab/internal/udpnode"
)

// refusalCause says why a program was not let attach, as metrics name it.
type refusalCause int

const (
	refusedDenied refusalCause = iota // by a rule
	refusedNoRule                     // no rule is about it
	refusedFull                       // as many as the rule allows are attached
	numRefusalCauses
)

var refusalNames = [numRefusalCauses]string{"denied", "no_rule", "full"}

// refusedGuest is the error of a program that was not let attach.
type refusedGuest struct {
	cause refusalCause
	error
}

// Unwrap returns the error that the program gets.
func (r refusedGuest) Unwrap() error { return r.error }

// guestRefusals counts programs that were not let attach, and those that had to go.
type guestRefusals struct {
	by      [numRefusalCauses]atomic.Uint64
	evicted atomic.Uint64

	mu   sync.Mutex
	told map[refusedAs]uint64 // how often each has happened
}

// refusedAs is why a program was not let attach.
type refusedAs struct {
	pid   int
	cause string
}

// mostTold bounds how many refusals are remembered. All are forgotten then, so that the
// next one of each program is told again.
const mostTold = 256

// again counts a refusal, and reports whether it is to be told: a program that asks each
// second, as a guest does that has lost its daemon, is told of the first time, the tenth,
// the hundredth and so on.
func (g *guestRefusals) again(pid int, err error) (times uint64, tell bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := refusedAs{pid, err.Error()}
	if g.told[r] == 0 && len(g.told) >= mostTold || g.told == nil {
		g.told = map[refusedAs]uint64{}
	}
	g.told[r]++
	rest := g.told[r]
	for rest%10 == 0 {
		rest /= 10
	}
	return g.told[r], rest == 1
}

func (g *guestRefusals) count(err error) {
	if r := (refusedGuest{}); errors.As(err, &r) {
		g.by[r.cause].Add(1)
	}
}

// into adds the counts to the counters of a status.
func (g *guestRefusals) into(counters map[string]uint64) {
	for i := range g.by {
		counters["guest_refused_"+refusalNames[i]] = g.by[i].Load()
	}
	counters["guests_evicted"] = g.evicted.Load()
}

// rights are what the rule lets a program do, for the log. A limit that the rule leaves
// out is the usual one.
func (r *rule) rights() []any {
	list := []any{"rule", r.name, "serve", r.Serve}
	fresh := defaultGuest()
	for _, o := range guestOptions {
		switch o.key {
		case "user", "group", "socket", "serve", "deny":
			continue
		}
		if text := o.at(&r.GuestConfig).String(); text != o.at(&fresh).String() {
			list = append(list, o.key, text)
		}
	}
	return list
}

// explainLimit adds the limit, and the remedy, to an error of too many open files.
func explainLimit(err error) error {
	var limit unix.Rlimit
	if errors.Is(err, unix.EMFILE) && unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		return fmt.Errorf("%w: the limit is %d: raise it (`ulimit -n 4096`, or LimitNOFILE= of the unit)", err,
			limit.Cur)
	}
	return err
}

// explainOpen adds the daemon that has the interface, if one has.
func explainOpen(cfg Config, err error) error {
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	pid, sockets := nic.Taker(err)
	if port := udpnode.Taker(err); pid == 0 && port != 0 {
		pid, sockets = port, proc.ListensAt(port)
	}
	if pid == 0 { // there is no link of a program, or its folder is refused first
		pid, sockets = listener(cfg.controlPath()), []string{cfg.controlPath()}
	}
	// This daemon listens at its own path already, so another one's socket is not there.
	if pid != 0 && len(sockets) > 0 && (sockets[0] == cfg.controlPath() || missing(sockets[0])) {
		text := fmt.Sprintf("process %d serves %s already, and its control socket, %s, was removed, or is in another "+
			"mount namespace: end that process, or serve another interface", pid, cfg.Interface, sockets[0])
		return &servedError{text, err}
	}
	path := control.DefaultPath(cfg.Interface)
	s, e := control.Status{}, error(control.ErrNoDaemon)
	if path != cfg.controlPath() {
		s, e = daemonAt(path)
	}
	if pid != 0 && len(sockets) > 0 && (e != nil || s.PID != pid) {
		path = sockets[0]
		s, e = daemonAt(path)
	}
	if r, is := control.RenamedAt(context.Background(), cfg.Interface, path); is {
		return &servedError{r.String(), err}
	}
	if e != nil || path == cfg.controlPath() || s.Interface.Name != cfg.Interface || s.Elsewhere() {
		return err
	}
	takeover := fmt.Sprintf("take its place with --takeover --control %s, ", path)
	if cfg.Transport == udpnode.UDP || hasSockets(s) {
		takeover = ""
	}
	return &servedError{fmt.Sprintf("xdpfabd, process %d, serves %s already, at %s, and one at a time can: %sstop it "+
		"first, or serve another interface", s.PID, cfg.Interface, path, takeover), err}
}

// nobodyAt returns the error of a takeover whose control socket belongs to no daemon. It
// names the daemon that serves the interface at the default path, if there is one.
func nobodyAt(cfg Config) error {
	at := cfg.controlPath()
	if path := control.DefaultPath(cfg.Interface); path != at {
		if s, err := daemonAt(path); err == nil && s.Interface.Name == cfg.Interface && !s.Elsewhere() {
			return fmt.Errorf("no daemon serves at %s, but process %d serves %s at %s: give --control %s", at, s.PID,
				cfg.Interface, path, path)
		}
	}
	if r, is := control.FindRenamed(context.Background(), cfg.Interface, control.DefaultPath("*")); is {
		return errors.New(r.String())
	}
	if pid := listener(at); pid != 0 && missing(at) {
		return fmt.Errorf("the control socket %s was removed, or is in another mount namespace, and a takeover "+
			"takes it: process %d (%s) still listens there; stop that one (its sessions end) and start this one "+
			"without --takeover", at, pid, proc.Name(pid))
	}
	return fmt.Errorf("no daemon serves at %s, whose place this one could take: start it without --takeover, or "+
		"give that daemon's --control", at)
}

// listener returns another process that listens at the path of a socket, also if the
// socket's file is there no longer; 0 if there is none, or this user may not see it.
func listener(path string) int {
	for _, l := range proc.ListenersAt(path) {
		if l.PID != 0 && l.PID != os.Getpid() {
			return l.PID
		}
	}
	return 0
}

// missing reports whether nothing is at a path.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// servedError means that a daemon has the interface. Its text has the remedy, and names
// the program that is in the way; the remedies of err would contradict it.
type servedError struct {
	text string
	err  error
}

func (e *servedError) Error() string {
	b := new(bpf.BusyError)
	switch {
	case !errors.As(e.err, &b):
		return e.text
	case b.LinkID != 0:
		return fmt.Sprintf("%s: %v: program %d, link %d", e.text, bpf.ErrBusy, b.ProgramID, b.LinkID)
	}
	return fmt.Sprintf("%s: %v: program %d", e.text, bpf.ErrBusy, b.ProgramID)
}

func (e *servedError) Unwrap() error { return e.err }
