// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Every field of a completion is filled, for a success and for an error entry.
func TestCompletionFields(t *testing.T) {
	progressModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		post := func(key uint64, context any) {
			t.Helper()
			m := &fi.Msg{Buf: make([]byte, 24), Result: make([]byte, 24), Count: 3, Dest: f.dest, Key: key,
				Datatype: atomic.Uint64, Op: atomic.Sum, Context: context}
			if err := errors.Join(f.ep.FetchAtomic(m, 0), f.cq.Wait(ctx(t), 1)); err != nil {
				t.Fatal(err)
			}
		}
		post(1, "good")
		var list [2]fi.Completion
		n, err := f.cq.Read(list[:])
		want := fi.Completion{Context: "good", Endpoint: f.ep, Flags: fi.CompletionAtomic | fi.CompletionRead, Source: f.dest, Bytes: 24}
		if n != 1 || err != nil || list[0] != want {
			t.Errorf("%d completions, %v: %+v, want %+v", n, err, list[0], want)
		}
		post(99, "bad")
		if n, err := f.cq.Read(list[:]); n != 0 || !errors.Is(err, fi.EAVAIL) {
			t.Errorf("before an error: %d completions, %v, want EAVAIL", n, err)
		}
		c, ok := f.cq.ReadErr()
		var failed *fi.OpError
		if !ok || !errors.As(c.Err, &failed) {
			t.Fatalf("the error entry: %t, %v", ok, c.Err)
		}
		if c.Context != "bad" || c.Endpoint != f.ep || c.Flags != want.Flags || c.Source != f.dest {
			t.Errorf("the error entry: %+v", c)
		}
		if failed.Errno() != fi.ENOKEY || failed.ProvErrno().String() != "not executed: target: no such key" {
			t.Errorf("the error is %v, %v", failed.Errno().Name(), failed.ProvErrno())
		}
		if c, ok := f.cq.ReadErr(); ok {
			t.Errorf("the error entry comes twice: %+v", c)
		}
	})
}

// Failures without an answer of the target are told by the session's end.
func TestProvErrnoOfASession(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	dest, err := f.av.Insert(ctx(t), f.server.Name(77))
	if err != nil {
		t.Fatal(err)
	}
	m := &fi.Msg{Buf: make([]byte, 8), Dest: dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
	if err := errors.Join(f.ep.Atomic(m, 0), f.cq.Wait(ctx(t), 1)); err != nil {
		t.Fatal(err)
	}
	c, _ := f.cq.ReadErr()
	var failed *fi.OpError
	if !errors.As(c.Err, &failed) || failed.ProvErrno().String() != "not executed: session: no such endpoint" {
		t.Errorf("%v", c.Err)
	}
	for e, want := range map[fi.ProvErrno]string{0: "success", 0xff0000: "ProvErrno(0xff0000)"} {
		if e.String() != want {
			t.Errorf("%q, want %q", e.String(), want)
		}
	}
}
