// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// The errors of this package, besides those of package xdpfab. What fails with an error
// that wraps [xdpfab.ErrOutcomeUnknown] may have happened; what fails with any other has
// not, unless a method says something else.
var (
	// ErrLayout means that there is something else in the memory: another primitive, one
	// with other parameters, or data.
	ErrLayout = errors.New("another layout")
	// ErrParameter means that a place or a parameter fits no primitive. It is also
	// xdpfab.ErrArgument.
	ErrParameter = errno.As(errno.Argument, errno.New("no primitive can have that", syscall.EINVAL))
	// ErrLost means that a lock or a permit may be another program's by now: its lease
	// ended before it was renewed, or the home lost its memory.
	ErrLost = errors.New("the lease is lost")
	// ErrReleased is the cause of the context of a lock or a permit after its release.
	ErrReleased = errors.New("released")
	// ErrMemoryLost means that the home has lost what the primitive had stored.
	ErrMemoryLost = errors.New("the home has lost its memory")
	// ErrClock means that numbers would go back, since the program that marked new memory
	// has a clock that is behind by more than a primitive allows.
	ErrClock = errors.New("numbers would go back")
)

// certain returns the failure of an operation as that of a call of which the certainty is
// another one: a look that failed leaves nothing unknown, for instance. The cause stays,
// and that of the end of ctx.
func certain(ctx context.Context, err, certainty error) error {
	var oe *xdpfab.OpError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &oe):
		if certainty == xdpfab.ErrOutcomeUnknown && errors.Is(err, xdpfab.ErrNotExecuted) {
			return &doubtful{err}
		}
		return err
	case oe.Certainty == certainty:
		return err
	}
	other := *oe
	if other.Certainty == xdpfab.ErrPeerRestarted {
		other.Cause = fmt.Errorf("%w: %w", xdpfab.ErrPeerRestarted, oe.Cause)
	}
	other.Certainty = certainty
	if ended := context.Cause(ctx); ended != nil && !errors.Is(other.Cause, ended) {
		other.Cause = fmt.Errorf("%w: %w", other.Cause, ended)
	}
	return &other
}

// doubtful is an error of an operation that was refused before it was sent, as that of a
// call of which an earlier operation may have run.
type doubtful struct{ error }

// Is reports whether the error is of a kind. Only the operation was not executed.
func (d *doubtful) Is(kind error) bool {
	return kind == xdpfab.ErrOutcomeUnknown || kind != xdpfab.ErrNotExecuted && errors.Is(d.error, kind)
}

// located is an error with the call and the place before it.
type located struct {
	where string
	err   error
}

func (l *located) Error() string { return told{errors.New(l.where), l.err}.Error() }

// Unwrap returns the error that has no place.
func (l *located) Unwrap() error { return l.err }

// in has an error say which call failed, and at which place: Mutex.Lock at offset 64 of
// region "locks" on 10.0.0.2. If a call was made by another one, the outer call is said.
func (p *part) in(method string, err error) error {
	if err == nil {
		return nil
	}
	place := p.name()
	if method != "" {
		place = strings.Replace(place, " ", "."+method+" ", 1)
	}
	return p.place.put(place, err)
}

// put puts a call and its place before an error. They replace what an operation says of
// itself: its word is one of the part's own.
func (at Place) put(call string, err error) error {
	switch l, is := err.(*located); {
	case err == nil:
		return nil
	case is:
		err = l.err
	}
	if oe, is := errors.AsType[*xdpfab.OpError](err); is && oe.Error() == err.Error() {
		named := *oe
		named.Op = call
		return &named
	}
	return &located{call + on(at.Home), err}
}

// named is in for the result of a method, as the method returns.
func (p *part) named(method string, err *error) {
	if *err != nil {
		*err = p.in(method, *err)
	}
}

// told is an error with words before it.
type told struct{ words, err error }

// tell puts words before an error, and the prefix that all texts begin with before both.
func tell(err error, format string, args ...any) error {
	return &told{fmt.Errorf(format, args...), err}
}

func (t told) Error() string {
	const prefix = "xdpfab: "
	return prefix + strings.TrimPrefix(t.words.Error(), prefix) + ": " + strings.TrimPrefix(t.err.Error(), prefix)
}

// Unwrap returns what the words wrap, and the error.
func (t told) Unwrap() []error { return []error{t.words, t.err} }
