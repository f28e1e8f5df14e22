// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// An alias posts in the order of its endpoint, through the same session, and with default
// flags of its own.
func TestAlias(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		cq, err := b.client.NewCompletionQueue(fi.CQAttr{})
		b.ok(err)
		ep, err := b.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, OpFlags: fi.FlagInject})
		b.ok(err)
		same, err := ep.Alias(fi.FlagDefaults)
		b.ok(err)
		if err := same.Atomic(b.add(0), 0); !errors.Is(err, fi.ErrNotEnabled) {
			b.Errorf("before Enable: %v", err)
		}
		b.ok(errors.Join(ep.Bind(b.av, 0), ep.Bind(cq, fi.BindSelective), ep.Enable()))
		loud, err := ep.Alias(fi.FlagCompletion)
		b.ok(err)
		if same.OpFlags() != fi.FlagInject || loud.OpFlags() != fi.FlagCompletion {
			b.Errorf("flags %v and %v", same.OpFlags(), loud.OpFlags())
		}
		sessions := counter(b, cableOf(b.server), "sessions_accepted")
		var ops []*fi.Msg
		for range 20 { // of three, the completion of the second alone is asked for
			quiet, told := b.fetchAdd(0), b.fetchAdd(0)
			b.ok(errors.Join(ep.FetchAtomic(quiet, fi.FlagDefaults), loud.FetchAtomic(told, fi.FlagDefaults), same.InjectAtomic(b.add(0))))
			ops = append(ops, quiet, told)
		}
		for _, done := range b.take(cq, 20) {
			if done.Err != nil || done.Endpoint != ep {
				b.Errorf("%+v", done)
			}
		}
		for i, m := range ops {
			if got, want := before(m), uint64(i/2*3+i%2); got != want {
				b.Errorf("operation %d found %d, want %d", i, got, want)
			}
		}
		if n := counter(b, cableOf(b.server), "sessions_accepted") - sessions; n != 1 {
			b.Errorf("%d sessions, want one for all handles", n)
		}
		swap := b.fetchAdd(0)
		swap.Op, swap.Compare = atomic.Cswap, []byte{60, 0, 0, 0, 0, 0, 0, 0}
		b.ok(same.SetOpFlags(fi.FlagCompletion))
		b.ok(same.CompareAtomic(swap, fi.FlagDefaults))
		b.take(cq, 1)
		if before(swap) != 60 || ep.OpFlags() != fi.FlagInject {
			b.Errorf("the comparison found %d, the endpoint has %v", before(swap), ep.OpFlags())
		}
	})
}

// An alias takes the flags that an endpoint takes, and keeps its endpoint open.
func TestAliasEnds(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 16)
	b := &bench{t, f.client, f.server, f.av, f.dest, 1}
	ep, _ := b.endpoint(fi.EndpointAttr{})
	for _, flags := range []fi.OpFlags{fi.FlagFence, fi.FlagMore, fi.FlagDefaults | fi.FlagInject, 1 << 40} {
		if _, err := ep.Alias(flags); !errors.Is(err, fi.ErrBadFlags) {
			t.Errorf("%v: %v", flags, err)
		}
	}
	a, err := ep.Alias(0)
	b.ok(err)
	if err := ep.Close(); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("close of an endpoint with an alias: %v", err)
	}
	if err := ep.Shutdown(t.Context()); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("shutdown of an endpoint with an alias: %v", err)
	}
	b.ok(ep.Atomic(b.add(0), 0))
	second, err := a.Alias(fi.FlagInject)
	b.ok(err)
	if a == ep || a.Name() != ep.Name() || second.Number() != ep.Number() || second.OpFlags() != fi.FlagInject {
		t.Errorf("aliases %s and %d with %v, want handles of %s", a.Name(), second.Number(), second.OpFlags(), ep.Name())
	}
	b.ok(errors.Join(second.Shutdown(t.Context()), a.Close(), a.Close()))
	_, again := a.Alias(0)
	for what, err := range map[string]error{"post": a.Atomic(b.add(0), 0), "receive": a.Receive(&fi.Receive{}, 0),
		"cancel": a.Cancel(nil), "alias": again} {
		if !errors.Is(err, fi.ErrClosed) {
			t.Errorf("%s by a closed alias: %v", what, err)
		}
	}
	b.ok(ep.Close())
	if _, err := ep.Alias(0); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("alias of a closed endpoint: %v", err)
	}
	// The end of the domain is the end of both.
	last, _ := b.endpoint(fi.EndpointAttr{})
	a, err = last.Alias(0)
	b.ok(err)
	b.ok(f.client.CloseAll())
	if err := a.Atomic(b.add(0), 0); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("post after the end of the domain: %v", err)
	}
	b.ok(errors.Join(last.Close(), a.Close(), last.Close()))
}
