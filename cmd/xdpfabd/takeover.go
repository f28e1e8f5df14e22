// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// takeOver takes the place of the daemon at the control socket: leave.go has the steps.
func takeOver(ctx context.Context, cfg Config, log *slog.Logger) error {
	s, err := newServer(cfg, log)
	if err != nil {
		return errFailure(err)
	}
	conn, err := control.AskToTakeOver(ctx, cfg.controlPath())
	if err != nil && ctx.Err() != nil {
		return s.giveUp()
	}
	if err != nil {
		return errFailure(err)
	}
	defer conn.Close()
	back := retreatOf(ctx, conn)
	defer back.stop()
	mems, doors, err := s.takeFrom(ctx, conn, back)
	if err != nil && back.taken() {
		return s.giveUp()
	}
	if err != nil {
		_ = control.Tell(conn, refusal(err))
		return errFailure(fmt.Errorf("takeover of the daemon at %s: %w; that daemon goes on, and its log says more", cfg.controlPath(), err))
	}
	s.dom.Resume()
	_ = control.Tell(conn, verdict{})
	_ = conn.Close() // the other one has nothing more to say
	defer claimFiles(cfg.Regions, log)()
	return errFailure(s.serve(ctx, mems, doors))
}

// takeFrom has the other daemon stop, and takes all that it has. When it returns without
// an error, the other one will not go on.
func (s *server) takeFrom(ctx context.Context, conn *net.UnixConn, back *retreat) (mems []*mr.Memory, doors []door, err error) {
	queues, pin, err := s.ask(conn)
	if err != nil {
		return nil, nil, err
	}
	if mems, err = s.cfg.allocateOwn(); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.turnBack(), free(mems), leaveAlone(doors))
		}
	}()
	step := func() { _ = conn.SetDeadline(time.Now().Add(drainLimit + stepLimit)) }
	step()
	if err := control.Tell(conn, verdict{}); err != nil {
		return mems, nil, err
	}
	if _, err := hear(conn); err != nil { // it cannot hand over after all
		return mems, nil, err
	}
	h, err := xdpfab.ReceiveHandover(conn)
	if err != nil {
		return mems, nil, err
	}
	defer h.Close()
	if doors, err = s.inheritFiles(h, mems); err != nil {
		return mems, doors, err
	}
	for i, r := range s.cfg.Regions {
		if step(); r.Backing != backingAnonymous {
			continue
		}
		if _, err := io.ReadFull(conn, mems[i].Bytes()[:r.Size]); err != nil {
			return mems, doors, fmt.Errorf("region %q: %w", r.Name, err)
		}
	}
	dom, err := h.Open(ctx, s.cfg.Interface, s.attr(queues, pin), s.stay, func(d *xdpfab.Domain) error { return s.inherit(d, h, mems) })
	if err != nil {
		return mems, doors, explainOpen(s.cfg, err)
	}
	s.dom = dom
	step()
	if err := back.close(); err != nil {
		return mems, doors, err
	}
	if err := control.Tell(conn, verdict{PID: os.Getpid()}); err != nil {
		return mems, doors, err
	}
	_ = conn.SetDeadline(time.Time{}) // if this one gave up now, there might be none
	_, err = hear(conn)
	return mems, doors, err
}

// turnBack gives the interface back before anything has happened.
func (s *server) turnBack() error {
	if s.dom == nil {
		return nil
	}
	return s.dom.CloseAll()
}

// ask claims the other daemon's place, and returns the number of its queues, and the
// folder in which it keeps its resident regions.
func (s *server) ask(conn *net.UnixConn) (queues int, pin string, err error) {
	_ = conn.SetDeadline(time.Now().Add(stepLimit))
	if err := control.Tell(conn, s.cfg.claim()); err != nil {
		return 0, "", err
	}
	v, err := hear(conn)
	if err == nil && s.cfg.Queues != 0 && s.cfg.Queues < v.Queues {
		err = fmt.Errorf("%d queues: want at least the %d that it uses", s.cfg.Queues, v.Queues)
	}
	own := cmp.Or(s.cfg.Queues, v.Queues)
	for _, q := range v.Lent {
		if err == nil && (q < own || q >= own+s.cfg.Lend) {
			err = fmt.Errorf("queue %d is lent, and of %d queues and %d to lend it is none of the latter: want as many as before", q, own, s.cfg.Lend)
		}
	}
	if was := v.Queues + v.Lend; err == nil && s.cfg.resides() && own+s.cfg.Lend != was {
		err = fmt.Errorf("%d queues, and %d to lend: want %d together, as that daemon has, to go on with its resident regions", own, s.cfg.Lend, was)
	}
	if err == nil {
		pin, err = s.cfg.inheritPin(v.Pin)
	}
	return v.Queues, pin, err
}

// attr returns the attributes of a domain that takes another's place.
func (s *server) attr(queues int, pin string) xdpfab.DomainAttr {
	a := s.cfg.domainAttr()
	a.Log = s.log
	s.cfg.pin(&a, pin)
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

// inheritFiles takes the control sockets and the memfds of regions out of a handover.
func (s *server) inheritFiles(h *xdpfab.Handover, mems []*mr.Memory) ([]door, error) {
	var x legacy
	text, fds := h.Added()
	if err := json.Unmarshal(text, &x); err != nil {
		return nil, err
	}
	files := 0
	for _, r := range s.cfg.Regions {
		if r.Backing == backingMemfd {
			files++
		}
	}
	if want := len(x.Doors) + files; len(fds) != want {
		return nil, fmt.Errorf("%d file descriptors: want %d, of control sockets and of memfds of regions", len(fds), want)
	}
	for i := range x.Doors {
		x.Doors[i].FD, fds = fds[0], fds[1:]
	}
	for i, r := range s.cfg.Regions {
		if r.Backing != backingMemfd {
			continue
		}
		var err error
		if mems[i], err = mr.Shared(fds[0], 1<<62); err != nil {
			return nil, fmt.Errorf("region %q: %w", r.Name, err)
		}
		fds = fds[1:]
	}
	return s.inheritDoors(x.Doors)
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
