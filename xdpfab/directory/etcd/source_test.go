// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdpfab/xdpfab/xdpfab/directory"
)

// A process that lives is back before its lease ends, even if etcd returns just after an
// attempt has failed: after the longest pause the connection is made, and the lease is
// kept by a call.
func TestReconnectingFitsTTL(t *testing.T) {
	b := connecting.Backoff
	pause := time.Duration(float64(b.MaxDelay) * (1 + b.Jitter))
	if longest := pause + connecting.MinConnectTimeout + callLimit; longest >= TTL {
		t.Errorf("a process may be back %v after etcd, and its lease ends after %v", longest, TTL)
	}
	if b.BaseDelay <= 0 || b.BaseDelay > b.MaxDelay || b.Multiplier < 1 {
		t.Errorf("%+v: want pauses that grow from one of some length", b)
	}
}

// proxy answers each reading with an empty directory, and watches as the test wants.
type proxy struct {
	net.Listener
	conn  atomic.Pointer[net.Conn] // the newest
	watch func(*proxy, grpc.ServerStream) error
}

func (p *proxy) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err == nil {
		p.conn.Store(&conn)
	}
	return conn, err
}

func (p *proxy) serve(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	if !strings.HasSuffix(method, "/Range") {
		return p.watch(p, stream)
	}
	var request message
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	return stream.SendMsg(&message{0x0a, 2, 0x18, 1}) // a header with revision 1
}

// message is one of gRPC as it is encoded.
type message []byte

// verbatim is a codec that leaves messages as they are.
type verbatim struct{}

func (verbatim) Marshal(v any) ([]byte, error) { return *v.(*message), nil }

func (verbatim) Unmarshal(data []byte, v any) error {
	*v.(*message) = append(message(nil), data...)
	return nil
}

func (verbatim) Name() string { return "proto" }

// What stands in the way of an answer is in the error.
func TestErrorHasTheCause(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	none, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = none.Close()
	for at, want := range map[string]string{none.Addr().String(): "connection refused", web.Listener.Addr().String(): "HTTP/1.1"} {
		src, err := Open("etcd://"+at, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		ctx, end := context.WithCancel(t.Context())
		_ = src.Watch(ctx, func(_ []directory.Node, got error) {
			if got == nil || !strings.Contains(got.Error(), want) {
				t.Errorf("%v: want %q in it", got, want)
			}
			end()
		})
	}
}

// watchBehind watches a directory behind a proxy until enough returns true. It returns
// how long that took, and fails if the watch does not end with its context.
func watchBehind(t *testing.T, watch func(*proxy, grpc.ServerStream) error, enough func(error) bool) time.Duration {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, watch: watch}
	srv := grpc.NewServer(grpc.ForceServerCodec(verbatim{}), grpc.UnknownServiceHandler(p.serve))
	go func() { _ = srv.Serve(p) }()
	defer srv.Stop()
	src, err := Open("etcd://"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	began := time.Now()
	err = src.Watch(ctx, func(_ []directory.Node, err error) { // hangs are for the limit of go test
		if enough(err) {
			end()
		}
	})
	if err != context.Canceled {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	return time.Since(began)
}

// made tells the client that its watch has begun.
var made = message{0x0a, 2, 0x18, 1, 0x18, 1}

// A proxy that ends each watch, or each connection with a watch, is read again, and ten
// times a second at most: the server behind it may be another one now.
func TestEndedWatchIsReadAgain(t *testing.T) {
	for name, watch := range map[string]func(*proxy, grpc.ServerStream) error{
		"with its connection": func(p *proxy, _ grpc.ServerStream) error { return (*p.conn.Load()).Close() },
		"alone":               func(*proxy, grpc.ServerStream) error { return status.Error(codes.Unavailable, "no server") },
		"once it is made": func(_ *proxy, s grpc.ServerStream) error {
			return cmp.Or(s.SendMsg(&made), status.Error(codes.Unavailable, "no server"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			took := watchBehind(t, watch, func(error) bool { n++; return n == 4 })
			if least := 3 * lostPause; took < least {
				t.Errorf("%d readings within %v, want %v at least", n, took, least)
			}
		})
	}
}

// A server that answers readings and no watch is told of: the list does not pass for the
// present one for ever.
func TestWatchWithoutAnswerIsAnError(t *testing.T) {
	t.Parallel()
	lists := 0
	silent := func(_ *proxy, s grpc.ServerStream) error {
		<-s.Context().Done()
		return s.Context().Err()
	}
	watchBehind(t, silent, func(err error) bool {
		if err == nil {
			lists++
			return false
		}
		if !strings.Contains(err.Error(), "etcd does not answer within 3s") {
			t.Errorf("%v: want it to say that etcd does not answer", err)
		}
		return lists > 0
	})
}
