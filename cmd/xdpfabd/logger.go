// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

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

// patience is how long a line of the log waits for whoever reads the log.
const patience = time.Second

// patientWriter gives up lines that nobody reads: a terminal or a pager that is stopped,
// or a pipe whose reader hangs, must not stop the daemon, which writes lines while it
// serves and while it ends. A line is written when Write returns, unless it takes too
// long.
type patientWriter struct {
	limit time.Duration
	lines chan []byte // to the goroutine that writes
	done  chan error  // a line has been written, or could not be

	mu   sync.Mutex
	late bool // a line is still being written
	told int  // that line, and the missing ones that it tells of
	left int  // lines given up since
}

// patient wraps a file; other writers do not block, and stay as they are.
func patient(w io.Writer) io.Writer {
	if _, is := w.(*os.File); is {
		// If the log is a pipe whose reader has gone, writing fails, as on a full disk,
		// instead of ending the process.
		signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
		return newPatient(w, patience)
	}
	return w
}

func newPatient(to io.Writer, limit time.Duration) *patientWriter {
	w := &patientWriter{limit: limit, lines: make(chan []byte), done: make(chan error, 1)}
	go func() {
		for line := range w.lines {
			_, err := to.Write(line)
			w.done <- err // there is nobody to tell why
		}
	}()
	return w
}

// Write implements io.Writer. It reports no error.
func (w *patientWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.late {
		select {
		case err := <-w.done:
			w.written(err)
		default:
			w.left++
			return len(line), nil
		}
	}
	text := bytes.Clone(line)
	if w.left > 0 {
		text = fmt.Appendf(nil, "xdpfabd: %d lines are missing here, since they could not be written\n%s", w.left, line)
	}
	w.told, w.left = w.left+1, 0
	w.lines <- text
	select {
	case err := <-w.done:
		w.written(err)
	case <-time.After(w.limit):
		w.late = true
	}
	return len(line), nil
}

// written takes the end of a line that was being written. One that could not be, such as
// on a full disk, is missing together with those that it told of.
func (w *patientWriter) written(err error) {
	w.late = false
	if err != nil {
		w.left += w.told
	}
}
