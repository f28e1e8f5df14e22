// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"fmt"
	"path/filepath"
)

// Renamed is the daemon of an interface that was renamed after the daemon began: its
// control socket has the former name.
type Renamed struct {
	Status
	Path string // of the control socket
}

// String says what to do for a takeover.
func (r Renamed) String() string {
	is, was := r.Interface.Name, r.RenamedFrom
	return fmt.Sprintf("%s is the %s of xdpfabd, process %d, renamed, whose control socket is %s: name it %s again "+
		"(`ip link set dev %s name %s`) and give -i %s, or stop that daemon", is, was, r.PID, r.Path, was, is, was, was)
}

// Asked says where that daemon answers.
func (r Renamed) Asked() string {
	return fmt.Sprintf("the daemon of %s, renamed from %s, has %s: give --control %s", r.Interface.Name, r.RenamedFrom,
		r.Path, r.Path)
}

// RenamedAt returns the daemon of an interface at a control socket, if the interface was
// renamed.
func RenamedAt(ctx context.Context, ifname, path string) (r Renamed, is bool) {
	c, err := Dial(path)
	if err != nil {
		return r, false
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, AskLimit)
	defer cancel()
	s, err := c.Status(ctx)
	return Renamed{s, path}, err == nil && s.Interface.Name == ifname && s.RenamedFrom != "" && !s.Elsewhere()
}

// FindRenamed looks for such a daemon among those whose control sockets are of a pattern.
func FindRenamed(ctx context.Context, ifname, pattern string) (r Renamed, is bool) {
	paths, _ := filepath.Glob(pattern)
	for _, path := range paths {
		if r, is = RenamedAt(ctx, ifname, path); is {
			return r, true
		}
	}
	return r, false
}
