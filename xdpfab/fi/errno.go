// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// Errno is a fabric error code, after fi_errno(3): an errno of the system, or one of the
// codes below, which libfabric adds from 256 on. It is positive; functions in C return it
// with a minus sign. As an error it has a text (fi_strerror), and errors.Is finds it
// equal to the [syscall.Errno] of the same number.
type Errno uint16

// The codes that libfabric adds to those of the system, as far as this package returns
// them. ENOKEY differs from the system's errno of that name, which it also equals for
// errors.Is.
const (
	EOTHER      Errno = 256 // FI_EOTHER: none of the others
	EOPBADSTATE Errno = 258 // FI_EOPBADSTATE
	EAVAIL      Errno = 259 // FI_EAVAIL: to be read with ReadErr
	EBADFLAGS   Errno = 260 // FI_EBADFLAGS
	ENOEQ       Errno = 261 // FI_ENOEQ
	EDOMAIN     Errno = 262 // FI_EDOMAIN
	ENOCQ       Errno = 263 // FI_ENOCQ
	ETRUNC      Errno = 265 // FI_ETRUNC
	ENOKEY      Errno = 266 // FI_ENOKEY
	ENOAV       Errno = 267 // FI_ENOAV
)

// fabricErrors are the names and texts of the codes from EOTHER on.
var fabricErrors = [...]struct{ name, text string }{
	{"EOTHER", "unclassified error"},
	{"ETOOSMALL", "buffer too small"},
	{"EOPBADSTATE", "not possible in the present state"},
	{"EAVAIL", "an error waits to be read"},
	{"EBADFLAGS", "unsupported flags"},
	{"ENOEQ", "no event queue"},
	{"EDOMAIN", "object of another domain"},
	{"ENOCQ", "no completion queue"},
	{"ECRC", "checksum mismatch"},
	{"ETRUNC", "truncated"},
	{"ENOKEY", "no memory region with this key"},
	{"ENOAV", "no address vector"},
	{"EOVERRUN", "queue overflow"},
	{"ENORX", "no receive buffer at the peer"},
	{"ENOMR", "too many memory regions"},
}

// added returns the place of a code in fabricErrors.
func (e Errno) added() (i int, ok bool) {
	i = int(e) - int(EOTHER)
	return i, i >= 0 && i < len(fabricErrors)
}

// Number returns the code as the number that it has in C.
func (e Errno) Number() uint16 { return uint16(e) }

// Name returns the name of the code in C, such as "FI_ENOCQ".
func (e Errno) Name() string {
	if i, ok := e.added(); ok {
		return "FI_" + fabricErrors[i].name
	}
	if name := errno.Name(e.system()); name != "" {
		return "FI_" + name
	}
	if e == 0 {
		return "FI_SUCCESS"
	}
	return fmt.Sprintf("errno %d", uint16(e))
}

// Error returns the text of the code (fi_strerror).
func (e Errno) Error() string {
	if i, ok := e.added(); ok {
		return fabricErrors[i].text
	}
	if e == 0 {
		return "success"
	}
	return e.system().Error()
}

// Is reports whether the target is the system's errno for the same failure, or Go's own
// error for something that is not supported.
func (e Errno) Is(target error) bool {
	switch target {
	case errors.ErrUnsupported:
		return e == EBADFLAGS || e.system().Is(target)
	case errno.NoKey:
		return e == ENOKEY || e == codeOf(errno.NoKey)
	}
	return target == e.system()
}

// system returns the system's errno, and codeOf its code. Windows has those of the
// standard from errno.Invented on.
func (e Errno) system() syscall.Errno { return syscall.Errno(e) | errno.Invented }

func codeOf(e syscall.Errno) Errno { return Errno(e &^ errno.Invented) }

// ErrnoOf returns the fabric error code for an error of this package: the positive number
// that a function in C would return with a minus sign. For a failed operation it is the
// code of the cause; ENOKEY, if the memory that was meant is gone. A context that ended
// is ETIMEDOUT or ECANCELED, and no error is 0. An error without a code is EOTHER, and
// then ok is false.
func ErrnoOf(err error) (code Errno, ok bool) {
	var (
		op  *OpError
		own *coded
	)
	if err == nil {
		return 0, true
	}
	if errors.As(err, &op) && op.Cause != nil {
		return ErrnoOf(op.Cause)
	}
	if errors.As(err, &own) {
		return own.code, true
	}
	if n, is := errno.Of(err); is {
		return Errno(n), true
	}
	switch {
	case errors.Is(err, ErrPeerRestarted):
		return ENOKEY, true
	case errors.Is(err, context.DeadlineExceeded):
		return codeOf(syscall.ETIMEDOUT), true
	case errors.Is(err, context.Canceled):
		return codeOf(syscall.ECANCELED), true
	}
	return EOTHER, false
}

// coded is an error with a text of its own, for which libfabric has a code.
type coded struct {
	text string
	code Errno
}

// reason returns an error with a fabric error code: an Errno, or a syscall.Errno.
func reason[E Errno | syscall.Errno](code E, text string) error { return &coded{text, Errno(code)} }

func (e *coded) Error() string { return e.text }

// Is reports whether the target is the code, or what equals the code.
func (e *coded) Is(target error) bool { return target == e.code || e.code.Is(target) }

// none is the error of a call on an object that is nil or a zero value. Most often the
// program has not looked at the error of the call that makes it.
func none(what, makes string) error {
	return errno.Unsent(errno.Refuse(ErrClosed, "xdpfab: the %s is nil or a zero value: want one of %s, whose "+
		"error says why there is none", what, makes))
}

// Each of these returns an error if the object is none.

func (f *Fabric) there() error {
	if f != nil {
		return nil
	}
	return none("Fabric", "NewFabric")
}

func (d *Domain) there() error {
	if d != nil && d.node != nil {
		return nil
	}
	return none("Domain", "Fabric.OpenDomain or Pipe")
}

func (ep *Endpoint) there() error {
	if ep != nil && ep.endpoint != nil {
		return nil
	}
	return none("Endpoint", "Domain.NewEndpoint")
}

func (q *CompletionQueue) there() error {
	if q != nil && q.dom != nil {
		return nil
	}
	return none("CompletionQueue", "Domain.NewCompletionQueue")
}

func (c *Counter) there() error {
	if c != nil && c.dom != nil {
		return nil
	}
	return none("Counter", "Domain.NewCounter")
}

func (av *AddressVector) there() error {
	if av != nil && av.dom != nil {
		return nil
	}
	return none("AddressVector", "Domain.NewAddressVector")
}

func (q *EventQueue) there() error {
	if q != nil && q.fabric != nil {
		return nil
	}
	return none("EventQueue", "Fabric.NewEventQueue")
}

func (p *PollSet) there() error {
	if p != nil && p.dom != nil {
		return nil
	}
	return none("PollSet", "Domain.NewPollSet")
}

func (p *PassiveEndpoint) there() error {
	if p != nil && p.dom != nil {
		return nil
	}
	return none("PassiveEndpoint", "Domain.NewPassiveEndpoint")
}

func (s *ScalableEndpoint) there() error {
	if s != nil && s.dom != nil {
		return nil
	}
	return none("ScalableEndpoint", "Domain.NewScalableEndpoint")
}

func (s *SharedTransmit) there() error {
	if s != nil && s.dom != nil {
		return nil
	}
	return none("SharedTransmit", "Domain.NewSharedTransmit")
}

func (s *SharedReceive) there() error {
	if s != nil && s.dom != nil {
		return nil
	}
	return none("SharedReceive", "Domain.NewSharedReceive")
}
