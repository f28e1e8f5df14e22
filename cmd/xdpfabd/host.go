// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"log/slog"
	"net"
	"os/user"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
)

// admit lets a program attach that comes by a control socket, if the rules allow that.
func (s *server) admit(ctx context.Context, p control.Program, socket string) (control.Place, error) {
	g, err := s.guest(p, socket)
	if err == nil {
		if g.place, err = g.rule.places.enter(ctx, p.UID); err != nil {
			err = refusedGuest{refusedFull, err}
		}
	}
	if err != nil {
		s.denied.count(err)
		if times, tell := s.denied.again(p.PID, err); tell {
			g.log.Warn("guest refused", "times", times, "cause", err)
		}
		return nil, err
	}
	return g, nil
}

// guest is a program by the rule that lets it attach, without a place yet.
func (s *server) guest(p control.Program, socket string) (g *guest, err error) {
	g = &guest{s: s, log: s.log.With("pid", p.PID, "uid", p.UID, "socket", socket)}
	g.rule, err = s.rules.admit(p, socket)
	return g, err
}

// guest is a program that a rule has let attach. It implements control.Place. The log is
// at level debug about one that only uses the memory of other nodes, as each command of
// the client does.
type guest struct {
	s      *server
	log    *slog.Logger
	rule   *rule
	place  *place
	serves atomic.Bool // it is, or was, there for peers
}

// limits are those of the guest.
func (g *guest) limits() host.GuestLimits {
	l := g.rule.limits()
	l.Attached = g.place.settle
	l.Serves = func() {
		if !g.serves.Swap(true) {
			g.log.Info("guest serves peers", g.rule.rights()...)
		}
	}
	return l
}

// Host implements control.Place.
func (g *guest) Host(conn *net.UnixConn) {
	g.log.Debug("guest attached", g.rule.rights()...)
	since := time.Now()
	g.place.talks(conn)
	g.gone(since, g.s.host.Serve(conn, g.limits()))
}

// gone logs the end of the guest.
func (g *guest) gone(since time.Time, err error) {
	defer g.s.progress.made()
	after := time.Since(since).Round(time.Millisecond).String()
	level := slog.LevelDebug
	if g.serves.Load() {
		level = slog.LevelInfo
	}
	tell := func(what string) { g.log.Log(context.Background(), level, what, "after", after) }
	switch {
	case err != nil:
		g.s.denied.evicted.Add(1)
		g.log.Warn("guest evicted", "cause", err)
	case g.s.leaves.Load(): // its conversation ends here in both cases
		tell("guest handed to the next daemon, or gone")
	default:
		tell("guest gone")
	}
}

// Leave implements control.Place.
func (g *guest) Leave() { g.place.leave() }

// stay admits a program that is the former daemon's guest. It does not wait for a
// place, since all programs stand still meanwhile. Nor does it log a refusal: the domain
// does.
func (s *server) stay(conn *net.UnixConn) (host.GuestLimits, func(error), error) {
	defer s.progress.made()
	p, err := control.ProgramAt(conn)
	if err != nil {
		return host.GuestLimits{}, nil, err
	}
	g, err := s.guest(p, s.socketOf(conn))
	if err == nil {
		g.place, err = g.rule.places.try(p.UID)
	}
	if err != nil {
		return host.GuestLimits{}, nil, err
	}
	since := time.Now()
	return g.limits(), func(err error) {
		g.gone(since, err)
		g.Leave()
	}, nil
}

// guests lists the programs that are attached.
func (s *server) guests() []control.Guest {
	list := []control.Guest{} // not nil, which JSON calls null
	for _, g := range s.host.Guests() {
		list = append(list, control.Guest{AttachedGuest: g, User: userName(g.UID)})
	}
	return list
}

// userName is the name of a user, empty if this machine has none.
func userName(uid uint32) string {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return ""
	}
	return u.Username
}
