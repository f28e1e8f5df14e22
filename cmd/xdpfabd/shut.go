// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// A rule lets programs attach that can connect. Whether they can is for the permissions
// of the socket, and a rule changes none.

// warnOfShut warns of rules that allow programs which no control socket lets in.
func (s *server) warnOfShut() {
	for _, r := range s.rules.given {
		if r.Deny || r.User == "" && r.Group == "" {
			continue
		}
		paths := s.cfg.paths()
		if r.Socket != "" {
			paths = []string{r.Socket}
		}
		if slices.ContainsFunc(paths, r.mayConnect) {
			continue
		}
		s.log.Warn("rule allows programs that may not write to the control socket: give it to their group with "+
			"--socket-group, or open it to all with --socket-mode 0666", "rule", r.name, "sockets", paths)
	}
}

// mayConnect reports whether a program that the rule is about may write to a socket, for
// all that is known. It is not known of a socket or of a user that cannot be looked up.
func (r *rule) mayConnect(path string) bool {
	var at unix.Stat_t
	if unix.Stat(path, &at) != nil || at.Mode&0o002 != 0 {
		return true
	}
	ofGroup := at.Mode&0o020 != 0
	if r.uid == nil {
		return ofGroup && *r.gid == at.Gid || *r.gid == 0
	}
	if *r.uid == 0 || *r.uid == at.Uid || *r.uid == uint32(os.Geteuid()) {
		return true
	}
	u, err := user.LookupId(strconv.Itoa(int(*r.uid)))
	if err != nil {
		return ofGroup
	}
	groups, err := u.GroupIds()
	return ofGroup && (err != nil || slices.Contains(groups, fmt.Sprint(at.Gid)))
}
