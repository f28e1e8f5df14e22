// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Every reason is told from itself, from its errno, and from no other reason; two say
// that something is not supported.
func TestReasonsHaveAnErrno(t *testing.T) {
	reasons := map[error]syscall.Errno{
		xdpfab.ErrAgain: syscall.EAGAIN, xdpfab.ErrNoKey: syscall.ENOKEY, xdpfab.ErrNoRegion: syscall.ENOENT,
		xdpfab.ErrAccess: syscall.EACCES, xdpfab.ErrOutOfBounds: syscall.EINVAL, xdpfab.ErrMisaligned: syscall.EINVAL,
		xdpfab.ErrOpNotSupported: syscall.EOPNOTSUPP, xdpfab.ErrNotImplemented: syscall.ENOSYS,
		xdpfab.ErrCount: syscall.EINVAL, xdpfab.ErrLength: syscall.EINVAL, xdpfab.ErrTooMany: syscall.EMSGSIZE,
		xdpfab.ErrTooBig: syscall.EMSGSIZE, xdpfab.ErrPeerSilent: syscall.ETIMEDOUT, xdpfab.ErrRefused: syscall.ECONNREFUSED,
		xdpfab.ErrSessionLost: syscall.ECONNRESET, xdpfab.ErrPeerClosed: syscall.ECONNRESET, xdpfab.ErrProtocol: syscall.EPROTO,
		xdpfab.ErrClosed: syscall.EBADF, xdpfab.ErrBusy: syscall.EBUSY, xdpfab.ErrUnknownPeer: syscall.EADDRNOTAVAIL,
		xdpfab.ErrInterfaceLost: syscall.ENETDOWN, xdpfab.ErrNotEnabled: 258, xdpfab.ErrErrorPending: 259, xdpfab.ErrNoCQ: 263,
	}
	for reason, code := range reasons {
		err := fmt.Errorf("wrapped: %w", reason)
		for other, otherCode := range reasons {
			if got := errors.Is(err, other); got != (reason == other) {
				t.Errorf("%v is %v: %t", reason, other, got)
			}
			if got := errors.Is(err, otherCode); got != (code == otherCode) {
				t.Errorf("%v is errno %d: %t", reason, int(otherCode), got)
			}
		}
		unsupported := reason == xdpfab.ErrOpNotSupported || reason == xdpfab.ErrNotImplemented
		if got := errors.Is(err, errors.ErrUnsupported); got != unsupported {
			t.Errorf("%v is errors.ErrUnsupported: %t", reason, got)
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
	for i := 0; i < 65; i++ { // nobody reads
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
