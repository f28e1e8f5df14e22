// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// reasons are the errors with the fabric error code that libfabric gives in the place of
// each.
var reasons = map[error]fi.Errno{
	fi.ErrAgain: fi.Errno(syscall.EAGAIN), fi.ErrNoKey: fi.ENOKEY, fi.ErrNoRegion: fi.Errno(syscall.ENOENT),
	fi.ErrAccess: fi.Errno(syscall.EACCES), fi.ErrOutOfBounds: fi.Errno(syscall.EINVAL),
	fi.ErrMisaligned: fi.Errno(syscall.EINVAL), fi.ErrOpNotSupported: fi.Errno(syscall.EOPNOTSUPP),
	fi.ErrNotImplemented: fi.Errno(syscall.ENOSYS), fi.ErrCount: fi.Errno(syscall.EINVAL),
	fi.ErrLength: fi.Errno(syscall.EINVAL), fi.ErrTooMany: fi.Errno(syscall.EMSGSIZE),
	fi.ErrTooBig: fi.Errno(syscall.EMSGSIZE), fi.ErrPeerSilent: fi.Errno(syscall.ETIMEDOUT),
	fi.ErrRefused: fi.Errno(syscall.ECONNREFUSED), fi.ErrSessionLost: fi.Errno(syscall.ECONNRESET),
	fi.ErrPeerClosed: fi.Errno(syscall.ECONNRESET), fi.ErrProtocol: fi.Errno(syscall.EPROTO),
	fi.ErrClosed: fi.Errno(syscall.EBADF), fi.ErrBusy: fi.Errno(syscall.EBUSY),
	fi.ErrUnknownPeer: fi.Errno(syscall.EADDRNOTAVAIL), fi.ErrInterfaceLost: fi.Errno(syscall.ENETDOWN),
	fi.ErrNotEnabled: fi.EOPBADSTATE, fi.ErrErrorPending: fi.EAVAIL, fi.ErrNoCQ: fi.ENOCQ,
	fi.ErrSignalled: fi.Errno(syscall.EAGAIN),
	fi.ErrNoAV:      fi.ENOAV, fi.ErrNoEQ: fi.ENOEQ, fi.ErrBadFlags: fi.EBADFLAGS, fi.ErrForeign: fi.EDOMAIN,
	fi.ErrArgument:  fi.Errno(syscall.EINVAL),
	fi.ErrTruncated: fi.ETRUNC, fi.ErrNoMessage: fi.Errno(syscall.ENOMSG), fi.ErrNotClaimed: fi.Errno(syscall.ENOMSG),
	fi.ErrNoReceiver: fi.Errno(syscall.ENOSYS), fi.ErrNotReceiving: fi.ENOCQ, fi.ErrNoReceive: fi.Errno(syscall.ENOENT),
	fi.ErrCancelled: fi.Errno(syscall.ECANCELED), fi.ErrMultiRecv: fi.Errno(syscall.EINVAL), fi.ErrContext: fi.Errno(syscall.EINVAL),
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
		unsupported := reason == fi.ErrOpNotSupported || reason == fi.ErrNotImplemented || reason == fi.ErrBadFlags || reason == fi.ErrNoReceiver
		if got := errors.Is(err, errors.ErrUnsupported); got != unsupported {
			t.Errorf("%v is errors.ErrUnsupported: %t", reason, got)
		}
		if got, ok := fi.ErrnoOf(err); got != code || !ok {
			t.Errorf("the code of %v is %v, want %v", reason, got, code)
		}
	}
	for reason := range reasons {
		if got := errors.Is(reason, syscall.ENOKEY); got != (reason == fi.ErrNoKey) {
			t.Errorf("%v is the system's ENOKEY: %t", reason, got)
		}
	}
}

// The codes that libfabric adds have the numbers, names and texts of their own; the
// others those of the system.
func TestErrnoNames(t *testing.T) {
	for code, want := range map[fi.Errno]struct {
		number int
		name   string
	}{
		fi.EOTHER: {256, "FI_EOTHER"}, 257: {257, "FI_ETOOSMALL"}, fi.EOPBADSTATE: {258, "FI_EOPBADSTATE"},
		fi.EAVAIL: {259, "FI_EAVAIL"}, fi.EBADFLAGS: {260, "FI_EBADFLAGS"}, fi.ENOEQ: {261, "FI_ENOEQ"},
		fi.EDOMAIN: {262, "FI_EDOMAIN"}, fi.ENOCQ: {263, "FI_ENOCQ"}, 264: {264, "FI_ECRC"},
		fi.ETRUNC: {265, "FI_ETRUNC"}, fi.ENOKEY: {266, "FI_ENOKEY"}, fi.ENOAV: {267, "FI_ENOAV"},
		268: {268, "FI_EOVERRUN"}, 269: {269, "FI_ENORX"}, 270: {270, "FI_ENOMR"},
		0: {0, "FI_SUCCESS"}, fi.Errno(syscall.EAGAIN): {11, "FI_EAGAIN"}, fi.Errno(syscall.ENOKEY): {126, "FI_ENOKEY"},
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
	if text := fi.Errno(271).Name(); text != "errno 271" {
		t.Errorf("beyond the last code: %q", text)
	}
}

// Errors that are no sentinels have a code too, if there is one that fits.
func TestErrnoOf(t *testing.T) {
	failed := func(certainty, cause error) error {
		return fmt.Errorf("call: %w", &fi.OpError{Op: "atomic", Peer: "b", Certainty: certainty, Cause: cause})
	}
	_, system := os.Open("/nowhere/at/all")
	for _, c := range []struct {
		err  error
		want fi.Errno
		ok   bool
	}{
		{nil, 0, true},
		{failed(fi.ErrNotExecuted, fi.ErrNoKey), fi.ENOKEY, true},
		{failed(fi.ErrNotExecuted, fmt.Errorf("%w: another has it", fi.ErrPeerRestarted)), fi.ENOKEY, true},
		{failed(fi.ErrOutcomeUnknown, context.DeadlineExceeded), fi.Errno(syscall.ETIMEDOUT), true},
		{failed(fi.ErrNotExecuted, context.Canceled), fi.Errno(syscall.ECANCELED), true},
		{failed(fi.ErrPeerRestarted, fi.ErrSessionLost), fi.Errno(syscall.ECONNRESET), true},
		{mr.ErrAccess, fi.Errno(syscall.EINVAL), true},
		{system, fi.Errno(syscall.ENOENT), true},
		{fmt.Errorf("wrapped: %w", fi.ETRUNC), fi.ETRUNC, true},
		{errors.New("tea time"), fi.EOTHER, false},
	} {
		if got, ok := fi.ErrnoOf(c.err); got != c.want || ok != c.ok {
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
		code, ok := fi.ErrnoOf(err)
		if !ok || !errors.Is(err, code) {
			t.Errorf("%v has code %v, %t, and is not equal to it", err, code, ok)
		}
		if is := errors.Is(err, fi.ENOKEY); is != (reason == mr.ErrKeyInUse) {
			t.Errorf("%v is FI_ENOKEY: %t", err, is)
		}
	}
}

// The text of an error begins with the name of the package, and has it once.
func TestErrorTexts(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]error{}
	_, seen["no such word"] = xdpfab.Word[uint64](ctx(t), p, "nowhere", 0)
	_, seen["no such key"] = xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 99}, 0).Add(ctx(t), 1)
	_, seen["no such address"] = f.av.Lookup(77)
	_, seen["not an address"] = f.av.Insert(ctx(t), "nobody")
	_, seen["no IP here"] = f.client.Dial(ctx(t), "10.0.0.1")
	_, seen["no such window"] = fi.NewFabric(fi.DomainAttr{Window: 1000})
	_, seen["no such interface"] = xdpfab.Open(ctx(t), "nothing0", fi.DomainAttr{})
	_, seen["no such size"] = f.client.NewCompletionQueue(fi.CQAttr{Size: -1})
	_, seen["no such name"] = f.server.Register(mustAlloc(t), mr.Options{Key: new(uint64), Name: strings.Repeat("x", 1000)})
	seen["too many to wait for"] = f.cq.Wait(ctx(t), 1000)
	seen["no message"] = f.ep.Atomic(nil, 0)
	seen["no such flag"] = f.ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Datatype: atomic.Uint64, Op: atomic.Sum}, 1<<40)
	seen["bind after enable"] = f.ep.Bind(f.cq, 0)
	seen["still bound"] = f.cq.Close()
	seen["still open"] = f.client.Close()
	for seen["full"] == nil { // nobody reads
		seen["full"] = f.ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Dest: f.dest, Key: 99, Datatype: atomic.Uint64, Op: atomic.Sum}, 0)
	}
	if err := f.cq.Wait(ctx(t), 1); err != nil {
		t.Fatal(err)
	}
	_, seen["pending"] = f.cq.Read(make([]fi.Completion, 1))
	c, _ := f.cq.ReadErr()
	seen["completion"] = c.Err
	late, cancel := context.WithTimeoutCause(ctx(t), time.Hour, errors.New("tea time"))
	cancel()
	_, seen["cancelled"] = xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0).Add(late, 1)
	if err := f.client.CloseAll(); err != nil {
		t.Fatal(err)
	}
	seen["the end"] = f.client.Err()
	seen["wait after the end"] = f.cq.Wait(ctx(t), 64)
	_, seen["closed domain"] = f.client.NewCounter()
	_, seen["closed peer"] = xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: 1}, 0).Add(ctx(t), 1)
	_, seen["closed vector"] = f.av.Insert(ctx(t), f.server.Name(0))
	seen["closed endpoint"] = f.ep.Atomic(&fi.Msg{}, 0)
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
