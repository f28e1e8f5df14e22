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
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/death"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/mr"
)

// takeOver takes the place of the daemon at the control socket: leave.go has the steps.
func takeOver(ctx context.Context, cfg Config, log *slog.Logger) error {
	s, err := newServer(cfg, log)
	if err != nil {
		return errFailure(err)
	}
	var conn *net.UnixConn
	since := time.Now()
	wants, err := cfg.claimAt(ctx)
	if err == nil {
		s.cfg.monitor, err = cfg.openBeside(ctx)
	}
	defer func() { closeMonitor(s.cfg.monitor) }() // unless it serves
	if err == nil {
		conn, err = control.AskToTakeOver(ctx, cfg.controlPath())
	}
	if err != nil && ctx.Err() != nil {
		return s.giveUp()
	}
	if errors.Is(err, control.ErrNoDaemon) {
		err = nobodyAt(cfg)
	}
	if mute := new(control.SilentError); errors.As(err, &mute) {
		mute.Fixed = true
	}
	if errors.Is(err, fs.ErrPermission) {
		return errInterface(err)
	}
	if err != nil {
		return errFailure(err)
	}
	defer conn.Close()
	back := retreatOf(ctx, conn, func() {
		_ = s.giveUp()
		os.Exit(exitOK)
	})
	defer back.end()
	doors, err := s.takeFrom(ctx, conn, back, wants)
	if err != nil && back.taken() {
		return s.giveUp()
	}
	if err != nil {
		_ = control.Tell(conn, refusal(err))
		if hungUp(err) {
			err = fmt.Errorf("it has hung up, as it does when another one takes its place already (`xdpfab stat` "+
				"shows which serves): %w", err)
		} else {
			err = fmt.Errorf("%w; that daemon continues", err)
		}
		return errFailure(fmt.Errorf("takeover of the daemon at %s: %w", cfg.controlPath(), err))
	}
	s.host.Node().Resume()
	_ = control.Tell(conn, verdict{})
	s.tellTakenOver(pidAt(conn), time.Since(since))
	_ = conn.Close() // the other one has nothing more to say
	claimFiles(s.served.all(), nil, log)
	if cfg.UDP && !wants.UDP {
		log.Info("UDP is served from here on: the former daemon served raw Ethernet alone")
	}
	return errFailure(s.serve(ctx, doors))
}

// tellTakenOver logs what this daemon has of the former one, and what it has not.
func (s *server) tellTakenOver(from int, took time.Duration) {
	kept := 0
	for _, r := range s.served.all() {
		if r.kept {
			kept++
		}
	}
	s.log.Info("took over", "from_pid", from, "took", took.Round(100*time.Microsecond).String(), "regions_kept", kept,
		"regions_new", len(s.served.all())-kept, "regions_ended", len(s.ended), "guests", len(s.guests()))
	for _, name := range s.ended {
		s.log.Warn("region of the former daemon ended: the configuration of this one does not have it", "region", name)
	}
}

// takeFrom has the other daemon stop, and takes all that it has. When it returns without
// an error, the other one will not go on.
func (s *server) takeFrom(ctx context.Context, conn *net.UnixConn, back *retreat, c claim) (doors []door, err error) {
	v, pin, err := s.ask(conn, c)
	if err != nil {
		return nil, err
	}
	given, err := s.expect(v.Regions, v.Files)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.undoOpen(), free(s.served.all()), leaveAlone(doors))
		}
	}()
	step := func() { _ = conn.SetDeadline(time.Now().Add(drainLimit + stepLimit)) }
	step()
	if err := control.Tell(conn, verdict{}); err != nil {
		return nil, err
	}
	if _, err := hearLast(conn, drainLimit+stepLimit); err != nil { // it cannot hand over after all
		return nil, err
	}
	h, err := host.ReceiveHandover(conn)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	defer func() {
		if s.former != nil {
			_ = s.former.Close()
		}
	}()
	if doors, err = s.inheritFiles(h, given); err != nil {
		return doors, err
	}
	for _, r := range given {
		if step(); r.Backing != backingAnonymous {
			continue
		}
		if _, err := io.ReadFull(conn, r.mem.Bytes()[:r.Size]); err != nil {
			return doors, fmt.Errorf("region %q: %w", r.Name, err)
		}
	}
	h.Charge(s.rules.budgets)
	if v.Progress {
		s.progress.begin(conn)
	}
	err = s.reopen(ctx, h, v.Queues, pin)
	if s.progress.end(); err != nil {
		return doors, explainOpen(s.cfg, err)
	}
	step()
	if err := back.close(); err != nil {
		return doors, err
	}
	if err = control.Tell(conn, verdict{PID: os.Getpid()}); err == nil {
		_ = conn.SetDeadline(time.Time{}) // if this one gave up now, there might be none
		_, err = hear(conn)
	}
	if err != nil && s.isSuccessor(err) {
		err = nil
	}
	return doors, err
}

// burial is how long a daemon that has hung up may take to be gone. It is less than the
// time for which one that lives waits for its interface. It is a variable for tests.
var burial = 4 * time.Second

// isSuccessor reports whether the former daemon has died when this one had everything:
// then none but this one can serve. hung is how its connection has ended.
func (s *server) isSuccessor(hung error) bool {
	if !hungUp(hung) || s.former == nil || s.former.Wait(burial) != nil {
		return false
	}
	s.log.Warn("former daemon died after it had handed everything over: this one serves")
	s.notify(fmt.Sprintf("MAINPID=%d", os.Getpid()))
	return true
}

// hungUp reports whether err is of a connection that the other process has ended.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// undoOpen gives the interface back before anything has happened.
func (s *server) undoOpen() error {
	if s.host == nil {
		return nil
	}
	return s.host.Close()
}

// ask claims the other daemon's place, and returns its answer, and the folder in which
// resident regions are to be kept.
func (s *server) ask(conn net.Conn, c claim) (v verdict, pin string, err error) {
	_ = conn.SetDeadline(time.Now().Add(askLimit))
	if err := control.Tell(conn, c); err != nil {
		return v, "", err
	}
	v, err = hear(conn)
	if err == nil && s.cfg.Queues != 0 && s.cfg.Queues < v.Queues {
		err = fmt.Errorf("%d queues: want at least the %d that it uses", s.cfg.Queues, v.Queues)
	}
	if err == nil {
		err = s.cfg.keysFit(v.Regions, v.Keys)
	}
	own := cmp.Or(s.cfg.Queues, v.Queues)
	if err == nil {
		err = s.cfg.interfaceFits(own)
	}
	if err == nil {
		err = s.cfg.lends(v.Lent, own)
	}
	resident := slices.ContainsFunc(v.Regions, func(l legacyOf) bool { return l.Backing == backingResident })
	if is, was := own+s.cfg.Lend, v.Queues+v.Lend; err == nil && resident && is != was {
		err = fmt.Errorf(
			"%d queues, with those to lend: want %d, as that daemon has, to go on with its resident regions", is, was)
	}
	if err == nil {
		err = s.cfg.vlanFits(v.VLAN)
	}
	if err == nil {
		pin, err = s.cfg.inheritPin(v.Pin)
	}
	return v, pin, err
}

// vlanFits reports an error if the addresses, and the tag of what is sent, would be other
// ones than those of a daemon with this policy. Whether sessions carry another tag than
// this one takes shows later.
func (c Config) vlanFits(is string) error {
	was, err := bpf.ParseVLAN(cmp.Or(is, bpf.VLANAny.String()))
	if err == nil && was.ID() != c.VLAN.ID() {
		err = fmt.Errorf("--vlan is %v, and that daemon has %v: want the same, or stop it and start this one", c.VLAN,
			was)
	}
	return err
}

// reopen opens the interface of a handover, with as many queues as the former node had
// unless the configuration says another number.
func (s *server) reopen(ctx context.Context, from *host.Handover, queues int, pin string) error {
	o := s.options(pin)
	o.Queues = cmp.Or(o.Queues, queues)
	h, err := host.TakeOver(ctx, from, s.cfg.Interface, o, s.stay,
		func(h *host.Host) error { return s.inherit(h, from) })
	if err == nil {
		s.host = h
	}
	return err
}

// inheritFiles takes the control sockets and the memfds of regions out of a handover.
func (s *server) inheritFiles(h *host.Handover, given []*region) ([]door, error) {
	var x legacy
	text, fds := h.Added()
	if err := json.Unmarshal(text, &x); err != nil {
		return nil, err
	}
	files := 0
	for _, r := range given {
		if r.Backing == backingMemfd {
			files++
		}
	}
	if x.Former && len(fds) > 0 {
		own, err := unix.FcntlInt(uintptr(fds[0]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		if s.former, err = death.Of(own); err != nil {
			return nil, err
		}
		fds = fds[1:]
	}
	if want := len(x.Doors) + files; len(fds) != want {
		return nil, fmt.Errorf("%d file descriptors: want %d, of control sockets and of memfds of regions",
			len(fds), want)
	}
	for i := range x.Doors {
		x.Doors[i].FD, fds = fds[0], fds[1:]
	}
	for _, r := range given {
		if r.Backing != backingMemfd {
			continue
		}
		var err error
		if r.mem, err = mr.Shared(fds[0], 1<<62); err != nil {
			return nil, fmt.Errorf("region %q: %w", r.Name, err)
		}
		fds = fds[1:]
	}
	return s.inheritDoors(x.Doors)
}

// inherit registers the regions, those of the former daemon as they were, and makes the
// endpoint.
func (s *server) inherit(h *host.Host, from *host.Handover) error {
	var x legacy
	text, _ := from.Added()
	if err := json.Unmarshal(text, &x); err != nil {
		return err
	}
	before := map[string]legacyRegion{}
	for _, r := range x.Regions {
		before[r.Name] = r
	}
	s.host, s.ended = h, nil
	for _, r := range x.Regions {
		if !slices.ContainsFunc(s.served.all(), func(own *region) bool { return own.Name == r.Name }) {
			s.ended = append(s.ended, r.Name)
		}
	}
	return s.register(before)
}

// interfaceFits refuses what opening the interface, with so many queues, would refuse:
// now the other daemon still serves.
func (c Config) interfaceFits(queues int) error {
	i, err := nic.Inspect(c.Interface)
	if err != nil {
		return nil // which opening it says better
	}
	mode, err := i.Keeps(c.XDP)
	if err != nil {
		return err
	}
	machine, err := nic.Machine()
	if err != nil {
		return nil
	}
	i.Attached = nil // the other daemon's program, which this one replaces
	plan := machine.Plan(&i, nic.Want{Queues: queues, Lend: c.Lend, Copy: c.Copy, BusyPoll: c.BusyPoll > 0, XDP: mode,
		VLAN: c.VLAN})
	if plan.Usable {
		return nil
	}
	return plan.Err()
}

// inheritPin returns the folder in which another daemon keeps resident regions, once
// there are some, and in which they stay; empty for none.
func (c Config) inheritPin(folder string) (string, error) {
	switch {
	case c.Pin == pinAuto, c.Pin == folder, c.Pin == pinNone && folder == "":
		return folder, nil
	case folder == "":
		folder = pinNone
	}
	return "", fmt.Errorf("--pin is %s, and that daemon keeps its resident regions in %s: want the same, or %s, to "+
		"take over what it has", c.Pin, folder, pinAuto)
}
