// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"net"
	"os/user"
	"strconv"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
)

// admit lets a program attach, if the rules allow that.
func (s *server) admit(p control.Program) (host func(*net.UnixConn), err error) {
	log := s.log.With("pid", p.PID, "uid", p.UID)
	limits, err := s.rules.admit(p)
	if err != nil {
		log.Warn("guest refused", "reason", err)
		return nil, err
	}
	return func(conn *net.UnixConn) {
		log.Info("guest attached", "gid", p.GID)
		since := time.Now()
		if err := s.dom.Host(conn, limits); err != nil {
			log.Warn("guest turned out", "error", err)
			return
		}
		log.Info("guest gone", "after", time.Since(since).Round(time.Millisecond).String())
	}, nil
}

// guests lists the programs that are attached.
func (s *server) guests() []control.Guest {
	list := []control.Guest{} // not nil, which JSON calls null
	for _, g := range s.dom.Guests() {
		name := ""
		if u, err := user.LookupId(strconv.FormatUint(uint64(g.UID), 10)); err == nil {
			name = u.Username
		}
		list = append(list, control.Guest{GuestInfo: g, User: name})
	}
	return list
}
