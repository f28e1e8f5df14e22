// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/tell"
)

func newLogger(cfg Config, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.LogLevel, ReplaceAttr: forPeople}
	var h slog.Handler = slog.NewTextHandler(w, o)
	if cfg.LogFormat == logJSON {
		h = slog.NewJSONHandler(w, o)
	}
	return slog.New(limitedHandler{h, newLogLimit(time.Now)})
}

// forPeople leaves out of an error what only a programmer knows.
func forPeople(_ []string, a slog.Attr) slog.Attr {
	err, is := a.Value.Any().(error)
	if !is && (a.Key == "cause" || a.Key == "remedy") {
		err = errors.New(a.Value.String())
	}
	if err == nil {
		return a
	}
	return slog.String(a.Key, tell.Plain(err))
}

// Peers and programs cause lines, some as often as they like, and must not fill a disk.
// So each message has at most logBurst lines at once, and logRate lines a second on
// average; the next line of the message says how many were left out. Errors are always
// written.
const (
	logBurst = 50
	logRate  = 1
)

// unlimited returns the same log without the limit, for lines that the daemon's own
// configuration causes.
func unlimited(log *slog.Logger) *slog.Logger {
	if h, is := log.Handler().(limitedHandler); is {
		return slog.New(h.Handler)
	}
	return log
}

// limitedHandler is a slog.Handler that leaves lines out. Its copies share the limit.
type limitedHandler struct {
	slog.Handler
	limit *logLimit
}

// Handle implements slog.Handler.
func (h limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelError {
		passes, left := h.limit.take(r.Message)
		if !passes {
			return nil
		}
		if left > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Uint64("left_out", left))
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h limitedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limitedHandler{h.Handler.WithAttrs(attrs), h.limit}
}

// WithGroup implements slog.Handler.
func (h limitedHandler) WithGroup(name string) slog.Handler {
	return limitedHandler{h.Handler.WithGroup(name), h.limit}
}

// mostMessages bounds the messages that are told apart. They are texts of the program, of
// which there are fewer.
const mostMessages = 1000

// logLimit counts lines by message.
type logLimit struct {
	now func() time.Time

	mu sync.Mutex
	of map[string]*logShare
}

// logShare is what a message may still write.
type logShare struct {
	lines float64 // at the time
	at    time.Time
	left  uint64 // lines left out since the last one that was written
}

func newLogLimit(now func() time.Time) *logLimit {
	return &logLimit{now: now, of: map[string]*logShare{}}
}

// take reports whether a line of a message may be written, and how many were left out
// before it.
func (l *logLimit) take(message string) (passes bool, left uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if len(l.of) >= mostMessages && l.of[message] == nil {
		message = ""
	}
	s := l.of[message]
	if s == nil {
		s = &logShare{lines: logBurst, at: now}
		l.of[message] = s
	}
	s.lines = min(s.lines+now.Sub(s.at).Seconds()*logRate, logBurst)
	s.at = now
	if s.lines < 1 {
		s.left++
		return false, 0
	}
	s.lines--
	left, s.left = s.left, 0
	return true, left
}
