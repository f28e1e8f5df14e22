// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// reasons are the errors with the fabric error code that libfabric gives in the place of
// each.
var reasons = map[error]xdpfab.Errno{
	xdpfab.ErrAgain: xdpfab.Errno(syscall.EAGAIN), xdpfab.ErrNoKey: xdpfab.ENOKEY, xdpfab.ErrNoRegion: xdpfab.Errno(syscall.ENOENT),
	xdpfab.ErrAccess: xdpfab.Errno(syscall.EACCES), xdpfab.ErrOutOfBounds: xdpfab.Errno(syscall.EINVAL),
	xdpfab.ErrMisaligned: xdpfab.Errno(syscall.EINVAL), xdpfab.ErrOpNotSupported: xdpfab.Errno(syscall.EOPNOTSUPP),
	xdpfab.ErrNotImplemented: xdpfab.Errno(syscall.ENOSYS), xdpfab.ErrCount: xdpfab.Errno(syscall.EINVAL),
	xdpfab.ErrLength: xdpfab.Errno(syscall.EINVAL), xdpfab.ErrTooMany: xdpfab.Errno(syscall.EMSGSIZE),
	xdpfab.ErrTooBig: xdpfab.Errno(syscall.EMSGSIZE), xdpfab.ErrPeerSilent: xdpfab.Errno(syscall.ETIMEDOUT),
	xdpfab.ErrRefused: xdpfab.Errno(syscall.ECONNREFUSED), xdpfab.ErrSessionLost: xdpfab.Errno(syscall.ECONNRESET),
	xdpfab.ErrPeerClosed: xdpfab.Errno(syscall.ECONNRESET), xdpfab.ErrProtocol: xdpfab.Errno(syscall.EPROTO),
	xdpfab.ErrClosed: xdpfab.Errno(syscall.EBADF), xdpfab.ErrBusy: xdpfab.Errno(syscall.EBUSY),
	xdpfab.ErrUnknownPeer: xdpfab.Errno(syscall.EADDRNOTAVAIL), xdpfab.ErrInterfaceLost: xdpfab.Errno(syscall.ENETDOWN),
	xdpfab.ErrNotEnabled: xdpfab.EOPBADSTATE, xdpfab.ErrErrorPending: xdpfab.EAVAIL, xdpfab.ErrNoCQ: xdpfab.ENOCQ,
	xdpfab.ErrSignalled: xdpfab.Errno(syscall.EAGAIN),
	xdpfab.ErrNoAV:      xdpfab.ENOAV, xdpfab.ErrNoEQ: xdpfab.ENOEQ, xdpfab.ErrBadFlags: xdpfab.EBADFLAGS, xdpfab.ErrForeign: xdpfab.EDOMAIN,
	xdpfab.ErrTruncated: xdpfab.ETRUNC, xdpfab.ErrNoMessage: xdpfab.Errno(syscall.ENOMSG), xdpfab.ErrNotClaimed: xdpfab.Errno(syscall.ENOMSG),
	xdpfab.ErrNoReceiver: xdpfab.Errno(syscall.ENOSYS), xdpfab.ErrNotReceiving: xdpfab.ENOCQ, xdpfab.ErrNoReceive: xdpfab.Errno(syscall.ENOENT),
	xdpfab.ErrCancelled: xdpfab.Errno(syscall.ECANCELED), xdpfab.ErrMultiRecv: xdpfab.Errno(syscall.EINVAL), xdpfab.ErrContext: xdpfab.Errno(syscall.EINVAL),
}

// Every reason is told from itself, from its code and the system's errno of the same
// number, and from no other reason; three say that something is not supported.
func TestReasonsHaveAnErrno(t *testing.T) {
	for reason, code := range reasons {
		err := fmt.Errorf("wrapped: %w", reason)
		for other, otherCode := range reasons {
			if got := errors.Is(err, other); got != (reason == other) {
				t.Errorf("%v is %v: %t", reason, other, got)
			}
			for _, number := range []error{otherCode, syscall.Errno(otherCode)} {
				if got := errors.Is(err, number); got != (code == otherCode) {
					t.Errorf("%v is %T %d: %t", reason, number, otherCode, got)
				}
			}
		}
		unsupported := reason == xdpfab.ErrOpNotSupported || reason == xdpfab.ErrNotImplemented || reason == xdpfab.ErrBadFlags || reason == xdpfab.ErrNoReceiver
		if got := errors.Is(err, errors.ErrUnsupported); got != unsupported {
			t.Errorf("%v is errors.ErrUnsupported: %t", reason, got)
		}
		if got, ok := xdpfab.ErrnoOf(err); got != code || !ok {
			t.Errorf("the code of %v is %v, want %v", reason, got, code)
		}
	}
	for reason := range reasons {
		if got := errors.Is(reason, syscall.ENOKEY); got != (reason == xdpfab.ErrNoKey) {
			t.Errorf("%v is the system's ENOKEY: %t", reason, got)
		}
	}
}

// The codes that libfabric adds have the numbers, names and texts of their own; the
// others those of the system.
func TestErrnoNames(t *testing.T) {
	for code, want := range map[xdpfab.Errno]struct {
		number int
		name   string
	}{
		xdpfab.EOTHER: {256, "FI_EOTHER"}, xdpfab.ETOOSMALL: {257, "FI_ETOOSMALL"}, xdpfab.EOPBADSTATE: {258, "FI_EOPBADSTATE"},
		xdpfab.EAVAIL: {259, "FI_EAVAIL"}, xdpfab.EBADFLAGS: {260, "FI_EBADFLAGS"}, xdpfab.ENOEQ: {261, "FI_ENOEQ"},
		xdpfab.EDOMAIN: {262, "FI_EDOMAIN"}, xdpfab.ENOCQ: {263, "FI_ENOCQ"}, xdpfab.ECRC: {264, "FI_ECRC"},
		xdpfab.ETRUNC: {265, "FI_ETRUNC"}, xdpfab.ENOKEY: {266, "FI_ENOKEY"}, xdpfab.ENOAV: {267, "FI_ENOAV"},
		xdpfab.EOVERRUN: {268, "FI_EOVERRUN"}, xdpfab.ENORX: {269, "FI_ENORX"}, xdpfab.ENOMR: {270, "FI_ENOMR"},
		0: {0, "FI_SUCCESS"}, xdpfab.Errno(syscall.EAGAIN): {11, "FI_EAGAIN"}, xdpfab.Errno(syscall.ENOKEY): {126, "FI_ENOKEY"},
	} {
		if int(code) != want.number || code.Name() != want.name {
			t.Errorf("%d is %s, want %d, %s", code, code.Name(), want.number, want.name)
		}
		if code == 0 {
			continue
		}
		if system := syscall.Errno(code).Error(); (code.Error() == system) != (code < 256) {
			t.Errorf("%s: %q, to the system %q", code.Name(), code.Error(), system)
		}
	}
	if text := xdpfab.Errno(271).Name(); text != "errno 271" {
		t.Errorf("beyond the last code: %q", text)
	}
}

// Errors that are no sentinels have a code too, if there is one that fits.
func TestErrnoOf(t *testing.T) {
	failed := func(certainty, cause error) error {
		return fmt.Errorf("call: %w", &xdpfab.OpError{Op: "atomic", Peer: "b", Certainty: certainty, Cause: cause})
	}
	_, system := os.Open("/nowhere/at/all")
	for _, c := range []struct {
		err  error
		want xdpfab.Errno
		ok   bool
	}{
		{nil, 0, true},
		{failed(xdpfab.ErrNotExecuted, xdpfab.ErrNoKey), xdpfab.ENOKEY, true},
		{failed(xdpfab.ErrNotExecuted, fmt.Errorf("%w: another has it", xdpfab.ErrPeerRestarted)), xdpfab.ENOKEY, true},
		{failed(xdpfab.ErrOutcomeUnknown, context.DeadlineExceeded), xdpfab.Errno(syscall.ETIMEDOUT), true},
		{failed(xdpfab.ErrNotExecuted, context.Canceled), xdpfab.Errno(syscall.ECANCELED), true},
		{failed(xdpfab.ErrPeerRestarted, xdpfab.ErrSessionLost), xdpfab.Errno(syscall.ECONNRESET), true},
		{mr.ErrAccess, xdpfab.Errno(syscall.EINVAL), true},
		{system, xdpfab.Errno(syscall.ENOENT), true},
		{fmt.Errorf("wrapped: %w", xdpfab.ETRUNC), xdpfab.ETRUNC, true},
		{errors.New("tea time"), xdpfab.EOTHER, false},
	} {
		if got, ok := xdpfab.ErrnoOf(c.err); got != c.want || ok != c.ok {
			t.Errorf("%v: %v, %t; want %v, %t", c.err, got, ok, c.want, c.ok)
		}
	}
}

// Errors of package mr match the code that ErrnoOf has for them, and libfabric's.
func TestErrorsOfRegions(t *testing.T) {
	for _, reason := range []error{
		mr.ErrSize, mr.ErrAccess, mr.ErrName, mr.ErrAuthKey, mr.ErrKeyInUse, mr.ErrNameInUse, mr.ErrInUse, mr.ErrClosed,
		mr.ErrOutOfBounds, mr.ErrMisaligned,
	} {
		err := fmt.Errorf("wrapped: %w", reason)
		code, ok := xdpfab.ErrnoOf(err)
		if !ok || !errors.Is(err, code) {
			t.Errorf("%v has code %v, %t, and is not equal to it", err, code, ok)
		}
		if is := errors.Is(err, xdpfab.ENOKEY); is != (reason == mr.ErrKeyInUse) {
			t.Errorf("%v is FI_ENOKEY: %t", err, is)
		}
	}
}

// The text of an error begins with the name of the package, and has it once.
func TestErrorTexts(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]error{}
	_, seen["no such word"] = xdpfab.Word[uint64](ctx(t), p, "nowhere", 0)
	_, seen["no such key"] = xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: 99}, 0).Add(ctx(t), 1)
	_, seen["no such address"] = f.av.Lookup(77)
	_, seen["not an address"] = f.av.Insert(ctx(t), "nobody")
	_, seen["no IP here"] = f.client.Dial(ctx(t), "10.0.0.1")
	_, seen["no such window"] = xdpfab.NewFabric(xdpfab.DomainAttr{Window: 1000})
	_, seen["no such interface"] = xdpfab.Open(ctx(t), "nothing0", xdpfab.DomainAttr{})
	_, seen["no such size"] = f.client.NewCompletionQueue(xdpfab.CQAttr{Size: -1})
	_, seen["no such name"] = f.server.Register(mustAlloc(t), mr.Options{Key: new(uint64), Name: strings.Repeat("x", 1000)})
	seen["too many to wait for"] = f.cq.Wait(ctx(t), 1000)
	seen["no message"] = f.ep.Atomic(nil, 0)
	seen["no such flag"] = f.ep.Atomic(&xdpfab.Msg{Buf: make([]byte, 8), Datatype: xdpfab.Uint64, Op: xdpfab.Sum}, 1<<31)
	seen["bind after enable"] = f.ep.Bind(f.cq, 0)
	seen["still bound"] = f.cq.Close()
	seen["still open"] = f.client.Close()
	for seen["full"] == nil { // nobody reads
		seen["full"] = f.ep.Atomic(&xdpfab.Msg{Buf: make([]byte, 8), Dest: f.dest, Key: 99, Datatype: xdpfab.Uint64, Op: xdpfab.Sum}, 0)
	}
	if err := f.cq.Wait(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	_, seen["pending"] = f.cq.Read(make([]xdpfab.Completion, 1))
	c, _ := f.cq.ReadErr()
	seen["completion"] = c.Err
	late, cancel := context.WithTimeoutCause(ctx(t), time.Hour, errors.New("tea time"))
	cancel()
	_, seen["cancelled"] = xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: 1}, 0).Add(late, 1)
	if err := f.client.CloseAll(); err != nil {
		t.Fatal(err)
	}
	seen["the end"] = f.client.Err()
	seen["wait after the end"] = f.cq.Wait(ctx(t), 64)
	_, seen["closed domain"] = f.client.NewCounter()
	_, seen["closed peer"] = xdpfab.WordAt[uint64](p, xdpfab.RemoteRegion{Key: 1}, 0).Add(ctx(t), 1)
	_, seen["closed vector"] = f.av.Insert(ctx(t), f.server.Name(0))
	seen["closed endpoint"] = f.ep.Atomic(&xdpfab.Msg{}, 0)
	for what, err := range seen {
		if err == nil {
			t.Errorf("%s: no error", what)
			continue
		}
		if s := err.Error(); !strings.HasPrefix(s, "xdpfab: ") || strings.Count(s, "xdpfab: ") != 1 {
			t.Errorf("%s: %q: want the prefix \"xdpfab: \" once", what, s)
		}
	}
}

func mustAlloc(t *testing.T) *mr.Memory {
	m, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}
