// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"log/slog"
	"net"
	"os/user"
	"strconv"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// admit lets a program attach that comes by a control socket, if the rules allow that.
func (s *server) admit(ctx context.Context, p control.Program, socket string) (control.Place, error) {
	g := &guest{dom: s.dom, log: s.log.With("pid", p.PID, "uid", p.UID, "socket", socket)}
	var err error
	if g.rule, err = s.rules.admit(p, socket); err == nil {
		err = g.rule.enter(ctx)
	}
	if err != nil {
		g.log.Warn("guest refused", "reason", err)
		return nil, err
	}
	return g, nil
}

// guest is a program that a rule has let attach. It implements control.Place.
type guest struct {
	dom  *xdpfab.Domain
	log  *slog.Logger
	rule *rule
}

// Host implements control.Place.
func (g *guest) Host(conn *net.UnixConn) {
	g.log.Info("guest attached", "rule", g.rule.name)
	since := time.Now()
	if err := g.dom.Host(conn, g.rule.limits()); err != nil {
		g.log.Warn("guest turned out", "error", err)
		return
	}
	g.log.Info("guest gone", "after", time.Since(since).Round(time.Millisecond).String())
}

// Leave implements control.Place.
func (g *guest) Leave() { g.rule.leave() }

// guests lists the programs that are attached.
func (s *server) guests() []control.Guest {
	list := []control.Guest{} // not nil, which JSON calls null
	for _, g := range s.dom.Guests() {
		list = append(list, control.Guest{GuestInfo: g, User: userName(g.UID)})
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
