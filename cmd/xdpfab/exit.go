// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/way"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xsk"
)

// The exit codes. The outcome of an operation takes precedence over the cause: an
// operation whose outcome is unknown because the peer fell silent exits with 3.
const (
	exitOK          = 0
	exitFailed      = 1 // refused, or not executed; or a check failed
	exitUsage       = 2
	exitUnknown     = 3 // outcome unknown, or not printed, or the peer restarted
	exitUnreachable = 4
	exitInterface   = 5 // privilege or interface
	exitNotSwapped  = 6 // the condition of an operation did not hold
)

// codeError is an error whose exit code does not follow from what it wraps.
type codeError struct {
	err  error
	code int
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

// usage returns an error in the way a command was called.
func usage(c *cobra.Command, format string, args ...any) error {
	return &codeError{fmt.Errorf("%s; see `%s --help`", fmt.Sprintf(format, args...), c.CommandPath()), exitUsage}
}

// negative refuses the first of some flags that is below 0; nil if none is.
func negative(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if v := c.Flags().Lookup(name).Value.String(); strings.HasPrefix(v, "-") {
			return usage(c, "--%s %s: want 0 or more", name, v)
		}
	}
	return nil
}

// interfaceError marks an error about an interface, or about the privileges to use one.
func interfaceError(err error) error { return &codeError{err, exitInterface} }

// causes map what an error wraps to its exit code; the first match counts.
var causes = []struct {
	is   error
	code int
}{
	{xdpfab.ErrOutcomeUnknown, exitUnknown},
	{xdpfab.ErrPeerRestarted, exitUnknown},
	{xdpfab.ErrInterfaceLost, exitInterface},
	{xdpfab.ErrHostLost, exitUnreachable},
	{xdpfab.ErrPeerSilent, exitUnreachable},
	{xdpfab.ErrPeerClosed, exitUnreachable},
	{xsk.ErrInterfaceDown, exitInterface},
	{route.ErrNoRoute, exitUnreachable},
	{way.ErrDown, exitInterface},
	{way.ErrNoRoute, exitUnreachable},
	{route.ErrUnreachable, exitUnreachable},
	{control.ErrWrong, exitUsage},
	{control.ErrNoDaemon, exitUnreachable},
	{control.ErrSilent, exitUnreachable},
	{route.ErrNoSource, exitInterface},
	{xsk.ErrNoInterface, exitInterface},
	{fs.ErrPermission, exitInterface},
}

func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if c := new(codeError); errors.As(err, &c) {
		return c.code
	}
	for _, c := range causes {
		if errors.Is(err, c.is) {
			return c.code
		}
	}
	return exitFailed
}

// withoutEffect is the error of an operation that only reads. It has no outcome that
// could be unknown: one that got no answer counts as not executed.
func withoutEffect(err error) error {
	switch e := err.(type) {
	case *xdpfab.OpError:
		if errors.Is(e.Certainty, xdpfab.ErrOutcomeUnknown) {
			e.Certainty = xdpfab.ErrNotExecuted
		}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			_ = withoutEffect(one) // in its place
		}
	case interface{ Unwrap() error }:
		_ = withoutEffect(e.Unwrap())
	}
	return err
}

// certainty returns what is known of an operation that failed.
func certainty(err error) string {
	for _, c := range []error{xdpfab.ErrNotExecuted, xdpfab.ErrOutcomeUnknown, xdpfab.ErrPeerRestarted} {
		if errors.Is(err, c) {
			return c.Error()
		}
	}
	return xdpfab.ErrNotExecuted.Error() // refused before it was sent
}

// oneLine is an error as it is shown, but for line breaks.
func oneLine(err error) string { return "xdpfab: " + tell.Plain(err) }

// errorReport is the JSON form of an error, as a line of a batch has it.
type errorReport struct {
	Error     string `json:"error"`
	Certainty string `json:"certainty,omitempty"`
	Code      int    `json:"code"`
	// Bytes are those from the beginning of FILE that get or put has copied for certain:
	// put continues with --skip and their number, get with --resume.
	Bytes *uint64 `json:"bytes,omitempty"`
}

// tellError says on stderr why a command failed. The wish for JSON counts even where the
// command line could not be parsed.
func (a *app) tellError(err error, args []string) {
	if !a.json && !slices.Contains(args, "--json") {
		fmt.Fprintln(a.err, tell.Fold(oneLine(err)))
		return
	}
	r := errorReport{Error: tell.Plain(err), Certainty: a.certainty(err), Code: exitCode(err)}
	if p, is := errors.AsType[*partial](err); is {
		r.Bytes = &p.bytes
	}
	e := json.NewEncoder(a.err)
	e.SetEscapeHTML(false)
	_ = e.Encode(r) // if stderr is lost, nothing can tell of it
}

// executed is what is known of an operation that ran, in a command that failed.
const executed = "executed"

// certainty returns what is known of the operation of a command that failed. It is empty
// for a command that only waited: its reads ran, and what it waits for is no operation.
func (a *app) certainty(err error) string {
	known := certainty(err)
	if errors.Is(err, errWait) || errors.Is(err, errInterrupted) {
		return ""
	}
	if a.ran && known == xdpfab.ErrNotExecuted.Error() && !errors.Is(err, xdpfab.ErrNotExecuted) {
		return executed
	}
	return known
}
