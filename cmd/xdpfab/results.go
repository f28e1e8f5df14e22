// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// errUnread is why a command ends whose output nobody reads.
var errUnread = errors.New("nobody reads the output")

// results writes to stdout, and keeps the first error of that. A pipe that nobody reads
// any more takes everything, as /dev/null does.
type results struct {
	to     io.Writer
	err    error
	unread func() // called when the reader has gone
}

func (r *results) Write(b []byte) (int, error) {
	n, err := r.to.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		r.unread()
		return len(b), nil
	}
	if err != nil && r.err == nil {
		r.err = err
	}
	return n, err
}

// unprinted says of an operation that ran, and whose result could not be printed, that it
// ran: a script that ran it anew would have it run twice.
func (a *app) unprinted(err error, out *results) error {
	if err == nil || out.err == nil {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: make room for the output", err)
	}
	if !a.ran {
		return err
	}
	if exitCode(err) == exitUnknown {
		return err
	}
	what := "the operation ran; its result"
	if a.copied {
		what = "the copy is complete; its report"
	}
	return &codeError{fmt.Errorf("%s could not be printed: %w", what, err), exitUnknown}
}

// joinOnce is errors.Join without the errors that another one wraps: a writer that has
// failed returns its error each time.
func joinOnce(err, other error) error {
	if err != nil && other != nil && errors.Is(err, other) {
		return err
	}
	return errors.Join(err, other)
}

// tellTyping says that somebody has to type what a command reads.
func (a *app) tellTyping() {
	if f, is := a.in.(*os.File); is && isTerminal(f) {
		fmt.Fprintln(a.err, "reading from the terminal; Ctrl-D ends the input, Ctrl-C the command")
	}
}

// What the screens of several commands have in common.

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func ifThen(b bool, s string) string {
	if b {
		return s
	}
	return ""
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
