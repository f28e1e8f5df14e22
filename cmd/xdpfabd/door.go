// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
)

// door is a control socket that programs come by.
type door struct {
	net.Listener
	path string
}

// paths returns the paths of the control sockets, the usual one first.
func (c Config) paths() []string {
	all := []string{c.controlPath()}
	for _, s := range c.Sockets {
		all = append(all, s.Path)
	}
	return all
}

// doors opens all control sockets but the usual one, which is open. If one fails, it
// closes all.
func (s *server) doors(ctx context.Context, usual net.Listener) ([]door, error) {
	all := []door{{usual, s.cfg.controlPath()}}
	for i, c := range s.cfg.Sockets {
		who, err := c.access()
		if err == nil {
			var l net.Listener
			if l, err = control.Listen(ctx, c.Path, who); err == nil {
				all = append(all, door{l, c.Path})
				continue
			}
		}
		return nil, errors.Join(fmt.Errorf("socket[%d]: %w", i, err), closeDoors(all))
	}
	return all, nil
}

func closeDoors(doors []door) (err error) {
	for _, d := range doors {
		err = errors.Join(err, d.Close())
	}
	return err
}

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

// accessOf says who may connect to one of the control sockets.
func (c Config) accessOf(i int) (control.Access, error) {
	if i == 0 {
		return c.access()
	}
	return c.Sockets[i-1].access()
}

// leaveAlone closes control sockets that stay the other daemon's.
func leaveAlone(doors []door) error {
	left, err := leaveDoors(doors)
	closeLeft(left)
	return errors.Join(err, closeDoors(doors))
}

// together returns a function for each of n control sockets to call when it takes no more
// requests. The function returns when all have called theirs and last has run. It returns
// at once if the daemon stays: then one socket has failed, and the others learn of it
// that way.
func together(ctx context.Context, n int, last func()) func() {
	var open sync.WaitGroup
	var once sync.Once
	open.Add(n)
	return func() {
		if open.Done(); ctx.Err() != nil {
			open.Wait()
			once.Do(last)
		}
	}
}

// socketOf returns the path of the control socket by which a program has connected.
func (s *server) socketOf(conn *net.UnixConn) string {
	for _, x := range s.cfg.Sockets {
		if conn.LocalAddr().String() == x.Path {
			return x.Path
		}
	}
	return s.cfg.controlPath()
}
