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
	// ErrLayout means that there is something else in the memory: another part, one with
	// other parameters, or data.
	ErrLayout = errors.New("another layout")
	// ErrParameter means that a place or a parameter can be of no part. It is also
	// xdpfab.ErrArgument.
	ErrParameter = errno.As(errno.Argument, errno.New("no part can have that", syscall.EINVAL))
	// ErrLost means that a lock or a permit may be another program's by now: its lease
	// ended before it was renewed, or the home lost its memory.
	ErrLost = errors.New("the lease is lost")
	// ErrReleased is the cause of the context of a lock or a permit after its release.
	ErrReleased = errors.New("released")
	// ErrMemoryLost means that the home has lost what the part had stored.
	ErrMemoryLost = errors.New("the memory is new")
	// ErrClock means that numbers would go back, since the program that marked new memory
	// has a clock that is behind by more than a part allows.
	ErrClock = errors.New("numbers would go back")
)

// certain returns the failure of an operation as that of a call of which the certainty is
// another one: a look that failed leaves nothing unknown, for instance. The cause stays,
// and that of the end of ctx.
func certain(ctx context.Context, err, certainty error) error {
	var oe *xdpfab.OpError
	switch {
	case err == nil || !errors.As(err, &oe):
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

// told is an error with words before it.
type told struct{ words, err error }

// tell puts words before an error, and the prefix that all texts begin with before both.
func tell(err error, format string, args ...any) error {
	return &told{fmt.Errorf(format, args...), err}
}

func (t *told) Error() string {
	const prefix = "xdpfab: "
	return prefix + strings.TrimPrefix(t.words.Error(), prefix) + ": " + strings.TrimPrefix(t.err.Error(), prefix)
}

// Unwrap returns what the words wrap, and the error.
func (t *told) Unwrap() []error { return []error{t.words, t.err} }
