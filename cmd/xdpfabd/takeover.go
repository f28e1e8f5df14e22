// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// takeOver takes the place of the daemon at the control socket: leave.go has the steps.
func takeOver(ctx context.Context, cfg Config, log *slog.Logger) error {
	conn, err := control.AskToTakeOver(ctx, cfg.controlPath())
	if err != nil {
		return errFailure(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // asked to end before it began
	s := newServer(cfg, log)
	mems, l, err := s.takeFrom(ctx, conn)
	if err != nil {
		_ = control.Tell(conn, refusal(err))
		return errFailure(fmt.Errorf("takeover of the daemon at %s: %w; that daemon goes on, and its log says more", cfg.controlPath(), err))
	}
	s.dom.Resume()
	_ = control.Tell(conn, verdict{})
	defer claimFiles(cfg.Regions, log)()
	return errFailure(s.serve(ctx, mems, l))
}

// takeFrom has the other daemon stop, and takes all that it has. When it returns without
// an error, the other one will not go on.
func (s *server) takeFrom(ctx context.Context, conn *net.UnixConn) (mems []*mr.Memory, l net.Listener, err error) {
	queues, err := s.ask(conn)
	if err != nil {
		return nil, nil, err
	}
	if mems, err = s.cfg.allocateOwn(); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.turnBack(), free(mems), leaveAlone(l))
		}
	}()
	step := func() { _ = conn.SetDeadline(time.Now().Add(drainLimit + stepLimit)) }
	step()
	if err := control.Tell(conn, verdict{}); err != nil {
		return mems, nil, err
	}
	h, err := xdpfab.ReceiveHandover(conn)
	if err != nil {
		return mems, nil, err
	}
	defer h.Close()
	if l, err = s.inheritMemory(h, mems); err != nil {
		return mems, l, err
	}
	for i, r := range s.cfg.Regions {
		if step(); r.Backing != backingAnonymous {
			continue
		}
		if _, err := io.ReadFull(conn, mems[i].Bytes()[:r.Size]); err != nil {
			return mems, l, fmt.Errorf("region %q: %w", r.Name, err)
		}
	}
	dom, err := h.Open(ctx, s.cfg.Interface, s.attr(queues), s.stay, func(d *xdpfab.Domain) error { return s.inherit(d, h, mems) })
	if err != nil {
		return mems, l, explainOpen(s.cfg, err)
	}
	s.dom = dom
	step()
	if err := control.Tell(conn, verdict{PID: os.Getpid()}); err != nil {
		return mems, l, err
	}
	_ = conn.SetDeadline(time.Time{}) // if this one gave up now, there might be none
	_, err = hear(conn)
	return mems, l, err
}

// leaveAlone closes the control socket, which stays the other daemon's.
func leaveAlone(l net.Listener) error {
	if l == nil {
		return nil
	}
	fd, _, err := control.Leave(l)
	if err == nil {
		err = unix.Close(fd)
	}
	return errors.Join(err, l.Close())
}

// turnBack gives the interface back before anything has happened.
func (s *server) turnBack() error {
	if s.dom == nil {
		return nil
	}
	return s.dom.CloseAll()
}

// ask claims the other daemon's place, and returns the number of its queues.
func (s *server) ask(conn *net.UnixConn) (queues int, err error) {
	_ = conn.SetDeadline(time.Now().Add(stepLimit))
	if err := control.Tell(conn, s.cfg.claim()); err != nil {
		return 0, err
	}
	v, err := hear(conn)
	if err == nil && s.cfg.Queues != 0 && s.cfg.Queues < v.Queues {
		err = fmt.Errorf("%d queues: want at least the %d that it uses", s.cfg.Queues, v.Queues)
	}
	return v.Queues, err
}

// attr returns the attributes of a domain that takes another's place.
func (s *server) attr(queues int) xdpfab.DomainAttr {
	a := s.cfg.domainAttr()
	a.Log = s.log
	if a.Queues == 0 {
		a.Queues = queues
	}
	return a
}

// allocateOwn gets the memory of regions, but for those that the other daemon gives.
func (c Config) allocateOwn() ([]*mr.Memory, error) {
	var own []RegionConfig
	for _, r := range c.Regions {
		if r.Backing != backingMemfd {
			own = append(own, r)
		}
	}
	got, err := allocate(own)
	if err != nil {
		return nil, err
	}
	mems := make([]*mr.Memory, len(c.Regions))
	for i, r := range c.Regions {
		if r.Backing != backingMemfd {
			mems[i], got = got[0], got[1:]
		}
	}
	return mems, nil
}

// inheritMemory takes the control socket and the memfds of regions out of a handover.
func (s *server) inheritMemory(h *xdpfab.Handover, mems []*mr.Memory) (l net.Listener, err error) {
	var x legacy
	text, fds := h.Added()
	if err := json.Unmarshal(text, &x); err != nil {
		return nil, err
	}
	for i, r := range s.cfg.Regions {
		if r.Backing != backingMemfd {
			continue
		}
		if len(fds) < 2 {
			return nil, fmt.Errorf("region %q: its memfd is missing", r.Name)
		}
		if mems[i], err = mr.Shared(fds[1], 1<<62); err != nil {
			return nil, fmt.Errorf("region %q: %w", r.Name, err)
		}
		fds = append(fds[:1], fds[2:]...)
	}
	if len(fds) != 1 {
		return nil, fmt.Errorf("%d file descriptors: want the control socket, and the memfds of regions", len(fds))
	}
	return control.ListenerOf(fds[0], x.Made)
}

// inherit registers the regions as they were, and makes the endpoint.
func (s *server) inherit(d *xdpfab.Domain, h *xdpfab.Handover, mems []*mr.Memory) error {
	var x legacy
	text, _ := h.Added()
	if err := json.Unmarshal(text, &x); err != nil {
		return err
	}
	if len(x.Regions) != len(mems) {
		return fmt.Errorf("%d regions: want %d", len(x.Regions), len(mems))
	}
	s.dom = d
	return s.register(mems, x.Regions)
}
