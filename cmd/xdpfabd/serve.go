// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/internal/version"
	"github.com/xdpfab/xdpfab/xdpfab/directory/etcd"
)

// closeLimit bounds the time that closing takes: together with the end of serving it
// stays below two seconds. The kernel does the rest when the process ends. It is a
// variable for tests, whose verdicts must not depend on how busy the machine is.
var closeLimit = 1500 * time.Millisecond

// start runs the daemon until a signal ends it. The steps that disturb no other process
// come first: the control socket, which shows whether another daemon is there, then
// memory, and only then the interface.
func start(cfg Config, stderr io.Writer) error {
	log := newLogger(cfg, stderr)
	err := explainLimit(begin(cfg, log))
	if exit := new(exitError); errors.As(err, &exit) && exit.told {
		return err
	}
	if err != nil && cfg.LogFormat == logJSON {
		log.Error("xdpfabd failed", "cause", tell.Plain(err))
		return &exitError{code: exitCode(err), err: err, told: true}
	}
	return err
}

func begin(cfg Config, log *slog.Logger) error {
	ctx, stop := untilSignal(log, reloadOf(cfg))
	defer stop()
	if cfg.takeover {
		return takeOver(ctx, cfg, log)
	}
	s, err := newServer(cfg, log)
	if err != nil {
		return errFailure(err)
	}
	who, err := cfg.access()
	if err != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("socket-group: %w", err)}
	}
	l, listenErr := control.Listen(ctx, cfg.controlPath(), who)
	if ctx.Err() != nil && l == nil {
		return nil // asked to end before it began
	}
	if listenErr != nil && !errors.Is(listenErr, fs.ErrPermission) {
		return explainListen(cfg, listenErr)
	}
	if l == nil { // without this right others are missing, as a rule: Open reports those first
		l = noListener{}
	}
	folder := cfg.pinFolder(log)
	left := leftIn(folder, leftPatience)
	if err := cfg.fitsLeft(left); err != nil {
		return errors.Join(&exitError{code: exitUsage, err: err}, l.Close())
	}
	if s.cfg.monitor, err = cfg.openMonitor(ctx); err != nil {
		return errors.Join(errFailure(err), l.Close())
	}
	defer closeMonitor(s.cfg.monitor)
	regions, err := cfg.allocateWith(cfg.unnamed(left))
	if err != nil {
		return errors.Join(errFailure(err), l.Close())
	}
	claimFiles(regions, nil, log)
	s.served.list = regions
	var h *host.Host
	err = stepWithin(ctx, closeLimit, func() (err error) {
		h, err = host.Open(ctx, cfg.Interface, s.options(folder))
		return err
	})
	if err == errAsked {
		return errFailure(s.endEarly(l))
	}
	if ctx.Err() != nil { // asked to end before it began
		if h != nil {
			err = h.Close()
		} else {
			err = nil
		}
		return errFailure(errors.Join(err, free(regions), l.Close()))
	}
	if err != nil {
		return errors.Join(errInterface(explainOpen(cfg, err)), free(regions), l.Close())
	}
	if listenErr != nil {
		return errors.Join(errInterface(suchAs(cfg.Interface, listenErr)), h.Close(), free(regions))
	}
	tellAdded(regions, log)
	s.host = h
	return errFailure(s.begin(ctx, l))
}

// noListener stands for a control socket that could not be made.
type noListener struct{ net.Listener }

func (noListener) Close() error { return nil }

// explainListen names the daemon that has the control socket, if one answers there. It
// serves this very interface, or it has nothing to do with it. The socket's folder may
// belong to the service's user, and so be no place for root's socket: that a daemon is
// there matters more. One that has not answered is not asked again.
func explainListen(cfg Config, err error) error {
	if live := new(control.LiveError); errors.As(err, &live) && (live.Stopped != nil || live.PID == 0) {
		return errInterface(err)
	}
	s, e := daemonAt(cfg.controlPath())
	switch {
	case e != nil:
		return errInterface(err)
	case cfg.foreign(s) != "":
		return errInterface(fmt.Errorf("%w: %s", control.ErrLive, cfg.foreign(s)))
	}
	takeover := " take its place with --takeover,"
	if cfg.Transport == udpnode.UDP || hasSockets(s) { // such a daemon hands nothing over
		takeover = ""
	}
	return errInterface(fmt.Errorf("%w: xdpfabd, process %d, serves %s already, at %s: use that one (`xdpfab region "+
		"create` adds regions),%s or stop it first", control.ErrLive, s.PID, cfg.Interface, cfg.controlPath(),
		takeover))
}

// hasSockets reports whether a daemon's frames go through UDP sockets.
func hasSockets(s control.Status) bool { return s.Interface.Transport == udpnode.UDP.String() }

// daemonAt asks the daemon of a control socket for its status.
func daemonAt(path string) (control.Status, error) {
	c, err := control.Dial(path)
	if err != nil {
		return control.Status{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), control.AskLimit)
	defer cancel()
	return c.Status(ctx)
}

// server is a daemon at work. Its fields do not change while it serves, but for served
// and succession.
type server struct {
	cfg    Config
	host   *host.Host
	log    *slog.Logger
	rules  rules
	served served
	began  time.Time
	nodes  host.Nodes
	denied guestRefusals
	succession
	steering steering
	captures captures

	directory atomic.Pointer[etcd.Source] // that this node announces itself to; nil before
	announced bool                        // it has logged that it serves
}

// newServer fails if the rules cannot be told, since a rule about an unknown user would
// fit anybody: the configuration was checked, but the answer may be another one by now.
func newServer(cfg Config, log *slog.Logger) (*server, error) {
	rules, unknown := newRules(cfg.Guests)
	return &server{cfg: cfg, log: log, rules: rules, began: time.Now()}, (*file)(nil).errors(unknown)
}

// options returns how the interface is opened.
func (s *server) options(folder string) host.Options {
	o := s.cfg.options(s.log, folder)
	o.Fault = s.faulted
	return o
}

// begin registers the regions, and serves until ctx ends, which is no error, or something
// fails. Host, regions and listener are its own from the beginning, and closed when it
// returns.
func (s *server) begin(ctx context.Context, l net.Listener) (err error) {
	if err := stepWithin(ctx, closeLimit, func() error { return s.register(nil) }); err == errAsked {
		return s.endEarly(l)
	} else if err != nil {
		return errors.Join(err, l.Close(), s.close())
	}
	doors, err := s.doors(ctx, l)
	if err != nil {
		return errors.Join(err, s.close())
	}
	if ctx.Err() != nil { // asked to end before it served
		return errors.Join(closeDoors(doors), s.close())
	}
	s.host.Node().Resume()
	return s.serve(ctx, doors)
}

// serve serves the regions that are registered until ctx ends, something fails, or
// another daemon takes this one's place.
func (s *server) serve(ctx context.Context, doors []door) (err error) {
	defer func() {
		e := s.close()
		if exit := new(exitError); e != nil && errors.As(err, &exit) && exit.told {
			s.log.Error("closing has failed", "cause", e)
		}
		err = errors.Join(err, e)
	}()
	s.warnOfShut()
	if err := s.steer(); err != nil && !s.cfg.takeover {
		if errors.Is(err, nic.ErrNoSteering) {
			err = errInterface(err)
		}
		return err
	} else if err != nil { // the other daemon is gone: better so than not at all
		s.log.Warn("NIC not steered", "cause", err)
	}
	for {
		ctx, cancel := context.WithCancelCause(ctx)
		err = s.run(ctx, cancel, doors)
		cancel(nil)
		to := new(leaving)
		if !errors.As(err, &to) {
			s.notify(daemon.SdNotifyStopping)
			return err
		}
		if doors, err = s.replaced(to); doors == nil {
			return err
		}
	}
}

// run serves the control socket and the regions until ctx ends, or until it can no longer
// serve one of the two.
func (s *server) run(ctx context.Context, cancel context.CancelCauseFunc, doors []door) error {
	monitor := s.cfg.monitor // for this run alone
	s.cfg.monitor = nil
	var wg sync.WaitGroup
	task := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				cancel(err)
			}
		})
	}
	succeed := s.succeeded(ctx, cancel, doors)
	for _, d := range doors {
		service := s.service(d.path)
		succeed(d, &service)
		task(func() error { return control.ServeListener(ctx, d.Listener, service) })
	}
	task(func() error { return s.monitor(ctx, monitor) })
	task(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-s.host.Node().End.Done:
			return s.host.Node().End.Returned()
		}
	})
	s.announce()
	wg.Go(func() { s.judgeSteering(ctx) })
	wg.Go(func() { s.inDirectory(ctx) })
	wg.Go(func() { s.missDoors(ctx, doors) })
	s.notify(daemon.SdNotifyReady + "\n" + s.state())
	<-ctx.Done()
	wg.Wait()
	err := context.Cause(ctx)
	if errors.As(err, new(*leaving)) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if s.host.Node().End.Err() == nil { // else the node has logged what happened to the interface
		s.log.Error("ending", "cause", err)
	}
	return &exitError{code: exitFailure, err: err, told: true}
}

// announce logs the interface, the settings in force and the regions.
func (s *server) announce() {
	n := s.host.Node()
	i := n.Dev.Info()
	s.announced = true
	s.log.Info("serving", "version", version.Version, "address", n.Name(0), "interface", i.Name, "index", i.Index,
		"driver", i.Driver, "mtu", i.MTU, "queues", i.Queues, "lend", s.cfg.Lend, "xdp", i.XDP, "copy", i.Copy,
		"huge_umem", i.HugeUMEM,
		"udp", i.UDP, "vlan", s.cfg.VLAN.String(), "served", i.Served, "above", i.Above, "transport", i.Transport,
		"cores", append([]int{}, n.Config.Cores...), "spin", n.Config.Spin.String(),
		"control", s.cfg.controlPath(), "pid", os.Getpid())
	if i.NoXDP != "" {
		s.log.Warn("no AF_XDP: UDP sockets carry the frames, round trips take about twice as long",
			"cause", i.NoXDP)
	}
	if i.Beside != "" {
		s.log.Warn("daemon may hear no peer", "cause", i.Beside)
	}
	if d, is := n.Dev.(interface{ Reason() string }); is && d.Reason() != "" {
		s.log.Warn("generic XDP, slower than native", "cause", d.Reason())
	}
	if d, is := n.Dev.(interface{ Tags() string }); is && d.Tags() != "" {
		s.log.Warn("NIC hides 802.1Q tags", "vlan", s.cfg.VLAN.String(), "cause", d.Tags())
	}
	if i.UDP && i.Served == "" && i.Transport == udpnode.XDP.String() {
		s.log.Info("no IP address: peers reach this node by its MAC address alone until it has one",
			"interface", i.Name, "above", i.Above)
	}
	s.tellQueues(i)
	if d, is := n.Dev.(interface{ StillHeld() string }); is && d.StillHeld() != "" {
		s.log.Warn("interrupts that a former daemon held back are late still", "cause", d.StillHeld())
	}
	if s.cfg.BusyPoll > 0 && i.Transport == udpnode.XDP.String() {
		s.log.Info("pollers run the NIC's driver: interrupts of their queues are held back until the daemon ends",
			"time", s.cfg.BusyPoll.String(), "budget", s.cfg.BusyBudget, "remembered", s.cfg.beside(nic.DeferSuffix))
	}
	regions := s.served.all()
	all := unlimited(s.log)
	for _, r := range regions {
		r.tell(all, "region")
	}
	if len(regions) == 0 {
		s.log.Warn("no regions: peers can reach this node but find nothing; add --region name=size")
	}
}

// tell logs what has happened to a region that is registered.
func (r *region) tell(log *slog.Logger, what string, more ...any) {
	d := r.describe()
	if d.AuthKey {
		log = log.With("auth_key", true)
	}
	log.Info(what, append([]any{"name", d.Name, "key", d.Key, "size", d.Size, "access", d.Access,
		"backing", d.Backing, "pages", d.Pages, "contents", r.contents()}, more...)...)
}

// state is what systemd shows of the daemon.
func (s *server) state() string {
	return fmt.Sprintf("STATUS=serving %d regions on %s", len(s.describe()), s.cfg.Interface)
}

// notify tells systemd, if it is listening.
func (s *server) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("systemd does not take the notification", "cause", err)
	}
}

// close releases everything, the interface first. It stops waiting after closeLimit; the
// memories then stay, since pollers may still use them.
func (s *server) close() error {
	s.endSteering()
	closed := make(chan error, 1)
	go func() { closed <- s.host.Close() }()
	select {
	case err := <-closed:
		s.tellLost()
		if s.announced {
			s.log.Info("closed", "interface", s.cfg.Interface, "uptime",
				time.Since(s.began).Round(time.Millisecond).String())
		}
		return errors.Join(err, free(s.served.all()))
	case <-time.After(closeLimit):
		s.tellLost()
		s.log.Warn("closing takes too long; the kernel will do the rest", "interface", s.cfg.Interface)
		return nil
	}
}
