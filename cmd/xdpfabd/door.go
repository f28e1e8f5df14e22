// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

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

// doorsLook is how often a daemon looks whether its control sockets, and the files of its
// regions, are still there.
const doorsLook = 5 * time.Second

// missDoors warns once of each control socket that somebody has removed. Neither programs
// nor a next daemon can find this daemon by it any more. It looks for the regions' files,
// too.
func (s *server) missDoors(ctx context.Context, doors []door) {
	look := time.NewTicker(doorsLook)
	defer look.Stop()
	missed, missedFiles := map[string]bool{}, map[*region]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		s.missFiles(missedFiles)
		for _, d := range doors {
			if gone := missing(d.path); gone != missed[d.path] {
				if missed[d.path] = gone; gone {
					s.log.Warn("control socket removed: programs and --takeover cannot find this daemon by it; "+
						"restart the daemon", "path", d.path)
				}
			}
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
