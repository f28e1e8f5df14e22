// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// An operation that was posted with FlagMore starts no later than with the next post
// without it, with one that fails, or when a goroutine reads or waits. If it did not, the
// poller would sleep for an hour.
func TestMoreIsStarted(t *testing.T) {
	ctx := sleepLong(t)
	bad := fi.Msg{Count: 1, Datatype: atomic.Uint64, Op: atomic.Sum} // without an operand
	cases := map[string]func(*testing.T, *fi.Endpoint, *fi.Counter){
		"failing post": func(t *testing.T, ep *fi.Endpoint, _ *fi.Counter) {
			if err := ep.Atomic(&bad, 0); !errors.Is(err, fi.ErrLength) {
				t.Error(err)
			}
		},
		"failing post with more to follow": func(t *testing.T, ep *fi.Endpoint, _ *fi.Counter) {
			if err := ep.Atomic(&bad, fi.FlagMore); !errors.Is(err, fi.ErrLength) {
				t.Error(err)
			}
		},
		"full queue": func(t *testing.T, ep *fi.Endpoint, _ *fi.Counter) {
			m := fi.Msg{Buf: make([]byte, 8), Count: 1, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
			for {
				if err := ep.Atomic(&m, fi.FlagMore); errors.Is(err, fi.ErrAgain) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
		},
		"post": func(t *testing.T, ep *fi.Endpoint, _ *fi.Counter) {
			if err := ep.Atomic(&fi.Msg{Buf: make([]byte, 8), Count: 1, Dest: 0, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
				t.Error(err)
			}
		},
		"read":             func(t *testing.T, ep *fi.Endpoint, _ *fi.Counter) { _, _ = ep.CQ().Read(nil) },
		"counter":          func(t *testing.T, _ *fi.Endpoint, c *fi.Counter) { c.Read() },
		"counter's errors": func(t *testing.T, _ *fi.Endpoint, c *fi.Counter) { c.ReadErr() },
		"wait": func(t *testing.T, ep *fi.Endpoint, _ *fi.Counter) {
			if err := ep.CQ().Wait(ctx, 1); err != nil {
				t.Error(err)
			}
		},
		"wait for a counter": func(t *testing.T, _ *fi.Endpoint, c *fi.Counter) {
			if err := c.Wait(ctx, 1); err != nil {
				t.Error(err)
			}
		},
		"progress": func(t *testing.T, ep *fi.Endpoint, _ *fi.Counter) { ep.Domain().Progress() },
	}
	for name, then := range cases {
		t.Run(name, func(t *testing.T) {
			a, b, _ := servedPipe(t)
			defer b.CloseAll()
			defer a.CloseAll()
			key := uint64(1)
			m, err := mr.Alloc(4096, mr.AllocOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if _, err := b.Register(m, mr.Options{Key: &key, Access: mr.RemoteWrite}); err != nil {
				t.Fatal(err)
			}
			av, _ := a.NewAddressVector()
			cq, _ := a.NewCompletionQueue(fi.CQAttr{})
			counter, _ := a.NewCounter()
			ep, _ := a.NewEndpoint(fi.EndpointAttr{Size: 16})
			if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Bind(counter, fi.BindWrite), ep.Enable()); err != nil {
				t.Fatal(err)
			}
			dest, err := av.Insert(ctx, b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			testnet.Blocked(t, 2, "engine.(*Engine).Sleep") // the pollers, after the Spin time
			one := binary.LittleEndian.AppendUint64(nil, 1)
			add := fi.Msg{Buf: one, Count: 1, Dest: dest, Key: key, Datatype: atomic.Uint64, Op: atomic.Sum}
			if err := ep.Atomic(&add, fi.FlagMore); err != nil {
				t.Fatal(err)
			}
			then(t, ep, counter)
			// No call below starts anything: the test looks at the counter's memory.
			for ; counter.Value().Load() == 0; time.Sleep(time.Millisecond) {
				if ctx.Err() != nil {
					t.Fatal("not started")
				}
			}
		})
	}
}
