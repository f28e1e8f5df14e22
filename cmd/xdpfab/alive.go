// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A daemon of this node that has answered may fall silent later. Operations through it
// have no end then, since the daemon is who gives up on peers.

// awaitDaemon waits for a sign of life of the daemon that the interface would be opened
// through, unless one has answered already: Open would wait for it longer than --timeout.
// It returns the daemon's socket, empty if there is none. A daemon in another network
// namespace has an interface of the same name, which is not meant: the attributes keep
// Open from asking it.
func (f *linkFlags) awaitDaemon(ctx context.Context, attr *xdpfab.DomainAttr, answered string) (string, error) {
	if !f.looksForDaemon() || answered != "" {
		return answered, nil
	}
	s := statusOf(ctx, f.ifname, attr.Control, f.giveUp)
	if s.elsewhere && !f.borrow {
		attr.Attach = fi.AttachNever
	}
	if s.other != "" && f.control != "" && f.by == "" {
		return "", &codeError{fmt.Errorf("the daemon at %s, which --control names, serves %s, not %s: leave out one "+
			"of -i and --control", f.control, s.other, f.ifname), exitUsage}
	}
	if s.status == nil {
		return "", s.err
	}
	return controlOf(f.ifname, attr.Control), nil
}

// askAgain is the most time between two questions whether a daemon is alive.
const askAgain = time.Second

// lastWords is the time that a command has to end and to say what is known of its
// operations. What is left to do, such as to cancel a receive, may wait for the daemon.
const lastWords = time.Second

// watchDaemon ends the command when the daemon at a control socket has been silent for so
// long. One that is gone is left to the domain, which attaches to the next one. The watch
// is over with the command, or when over is closed.
func (a *app) watchDaemon(ctx context.Context, socket string, limit time.Duration, over <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-time.After(min(limit, askAgain)):
		}
		d, err := control.Dial(socket)
		if err == nil {
			d.Patience = limit
			err = errors.Join(d.Alive(ctx), d.Close())
		}
		if errors.Is(err, control.ErrSilent) {
			a.giveUp(err)
			if a.exit != nil {
				time.Sleep(lastWords)
				fmt.Fprintln(a.err, tell.Fold(oneLine(err)))
				a.exit(exitCode(err))
			}
			return
		}
	}
}

// ended is the error of the daemon at a control socket, if that has ended and no other
// one took its place. Without a socket there is none.
func ended(socket string) error {
	if socket == "" {
		return nil
	}
	d, err := control.Dial(socket)
	if err == nil {
		return d.Close()
	}
	return err
}

// closeAll closes the domain of a command, unless its daemon fell silent: closing would
// wait for that. If the daemon is continued later, it learns that this process has ended.
func closeAll(ctx context.Context, dom *xdpfab.Domain) error {
	if errors.Is(context.Cause(ctx), control.ErrSilent) {
		return nil
	}
	return dom.CloseAll()
}

// whyGivenUp adds to the error of a command why it was ended, if its daemon fell silent.
// One whose reader has gone has done what was wanted. It adds a remedy to the error of a
// daemon that ended.
func whyGivenUp(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if errors.Is(err, xdpfab.ErrHostLost) && strings.HasSuffix(err.Error(), xdpfab.ErrHostLost.Error()) {
		err = fmt.Errorf("%w: start it again, and run the command again", err)
	}
	ended := errors.Is(err, context.Canceled) || errors.Is(err, errUnread) || errors.Is(err, errInterrupted)
	switch {
	case errors.Is(cause, errUnread) && ended && !errors.Is(err, xdpfab.ErrOutcomeUnknown):
		return nil
	case !errors.Is(cause, control.ErrSilent):
		return err
	case errors.Is(err, xdpfab.ErrOutcomeUnknown):
		return fmt.Errorf("%w: %w", err, cause)
	}
	return cause
}

// notices tell on stderr what happens to the interface of a command that waits for peers:
// nothing that it has asked for would fail.
type notices struct {
	to     io.Writer
	opened atomic.Bool // before, Open's error or tellWay says it
}

// Enabled implements slog.Handler.
func (n *notices) Enabled(_ context.Context, level slog.Level) bool {
	return n.opened.Load() && (level == slog.LevelWarn || level == slog.LevelInfo) // Error ends the command
}

// Handle implements slog.Handler.
func (n *notices) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "interface" {
			text = a.Value.String() + ": " + text
		} else {
			text += fmt.Sprintf("; %s: %v", a.Key, a.Value)
		}
		return true
	})
	_, err := fmt.Fprintln(n.to, tell.Fold(fmt.Sprintf("xdpfab: %s  %s", r.Time.Format(time.TimeOnly), text)))
	return err
}

// WithAttrs implements slog.Handler. Nobody adds any.
func (n *notices) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup implements slog.Handler. Nobody makes one.
func (n *notices) WithGroup(string) slog.Handler { return n }
