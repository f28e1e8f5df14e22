// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
)

// leftDoor is a control socket that one daemon handed to the next one; connections wait
// there.
type leftDoor struct {
	FD   int  `json:"-"`
	Made bool // see control.Leave
}

// leaveDoors leaves all control sockets.
func leaveDoors(doors []door) (all []leftDoor, err error) {
	for _, d := range doors {
		fd, made, err := control.Leave(d.Listener)
		if err != nil {
			closeLeft(all)
			return nil, err
		}
		all = append(all, leftDoor{fd, made})
	}
	return all, nil
}

func closeLeft(left []leftDoor) {
	for _, d := range left {
		_ = unix.Close(d.FD)
	}
}

// inheritDoors takes over control sockets that were handed on, in the order of paths, and
// has them obey this daemon's configuration. The file descriptors stay the caller's.
// After an error, all of them are handed on again.
func (s *server) inheritDoors(left []leftDoor) (all []door, err error) {
	paths := s.cfg.paths()
	if len(left) != len(paths) {
		return nil, fmt.Errorf("%d control sockets: want %d", len(left), len(paths))
	}
	for i, x := range left {
		l, err := control.ListenerOf(x.FD, x.Made)
		if err != nil {
			return nil, errors.Join(err, leaveAlone(all))
		}
		all = append(all, door{l, paths[i]})
		who, err := s.cfg.accessOf(i)
		if err == nil {
			err = who.Apply(paths[i])
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("control socket: %w", err), leaveAlone(all))
		}
	}
	return all, nil
}

// leaveAlone closes control sockets that stay the other daemon's.
func leaveAlone(doors []door) error {
	left, err := leaveDoors(doors)
	closeLeft(left)
	return errors.Join(err, closeDoors(doors))
}

// accessOf reports who may connect to one of the control sockets.
func (c Config) accessOf(i int) (control.Access, error) {
	if i == 0 {
		return c.access()
	}
	return c.Sockets[i-1].access()
}
