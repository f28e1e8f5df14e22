// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"time"

	systemd "github.com/coreos/go-systemd/v22/unit"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/udpnode"
)

// sameWish is the time for which a second signal to end is taken for the first one's
// repetition: `timeout`, shells and service managers signal a process and then its group.
const sameWish = time.Second

// untilSignal returns a context that ends at SIGTERM or SIGINT. Another one, later than
// sameWish, ends the process, code 1; the kernel then detaches the XDP program, and the
// next daemon replaces the control socket. SIGHUP changes nothing, since nothing is read
// again and a terminal that goes away is no reason to end: the log says what does.
func untilSignal(log *slog.Logger, reload string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		w := wishes{log: log, reload: reload, end: cancel, exit: os.Exit}
		for {
			select {
			case <-done:
				return
			case sig := <-signals:
				w.handle(sig, time.Now())
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		wg.Wait()
		cancel()
	}
}

// stepWithin takes a step of the start, and returns its error. If ctx has ended and the
// step takes longer than a limit still, it returns errAsked: the kernel may take minutes
// to check the program of resident regions, and takes all back when the process ends.
func stepWithin(ctx context.Context, limit time.Duration, step func() error) error {
	done := make(chan error, 1)
	go func() { done <- step() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return errAsked
	}
}

// errAsked means that the daemon ends in the middle of a step, because it was asked to.
var errAsked = errors.New("asked to end before it serves")

// endEarly ends the daemon in the middle of a step that does not end. The kernel takes
// back what the process has.
func (s *server) endEarly(l net.Listener) error {
	s.log.Info("ending in the middle of the start: the kernel will do the rest", "interface", s.cfg.Interface)
	closed := make(chan struct{})
	go func() {
		if s.host != nil { // first of all, what is resident must not outlive the process
			_ = s.host.Close()
		}
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeLimit):
	}
	return l.Close()
}

// wishes are what signals have asked for. One goroutine has them.
type wishes struct {
	log    *slog.Logger
	reload string // what has the configuration take effect
	end    func()
	exit   func(code int)
	at     time.Time // of the first signal to end; zero before it
}

func (w *wishes) handle(sig os.Signal, now time.Time) {
	switch {
	case sig == unix.SIGHUP:
		w.log.Warn("SIGHUP changes nothing: a daemon reads its configuration at its start only, and goes on",
			"reload", w.reload, "regions", "xdpfab region create, xdpfab region remove")
	case w.at.IsZero():
		w.at = now
		w.log.Info("closing sessions and giving the interface back", "signal", sig.String())
		w.end()
	case now.Sub(w.at) < sameWish:
		w.log.Debug("the same signal again", "signal", sig.String())
	default:
		w.log.Warn("second signal: ending at once", "signal", sig.String())
		w.exit(exitFailure)
	}
}

// reloadOf returns what has the present configuration take effect: another daemon that
// takes over, or, where there are UDP sockets, a restart. Under systemd the unit does it.
func reloadOf(cfg Config) string {
	sockets := cfg.Transport == udpnode.UDP
	if os.Getenv("NOTIFY_SOCKET") == "" {
		if sockets {
			return "stop xdpfabd, and start it again"
		}
		return "start xdpfabd as this one was, with --takeover"
	}
	unit := "xdpfabd@" + cfg.Interface
	if systemd.UnitNameEscape(cfg.Interface) != cfg.Interface {
		unit = "xdpfabd@$(systemd-escape " + cfg.Interface + ")"
	}
	if sockets {
		return "systemctl restart " + unit
	}
	return "systemctl reload " + unit
}
