// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// An endpoint finds regions on the session of its operations; what it posts completes
// as if nothing was beside it.
func TestEndpointLookup(t *testing.T) {
	directModes(t, func(t *testing.T, a fi.DomainAttr) {
		f := setUp(t, a, 64)
		r, err := f.ep.Lookup(ctx(t), f.dest, "r")
		if err != nil || r.Key != 1 || r.Size != 1<<16 || r.Incarnation != f.region.Incarnation() || r.Name != "r" {
			t.Fatalf("%+v, %v", r, err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 100 {
					if got, err := f.ep.Lookup(ctx(t), f.dest, "r"); got != r || err != nil {
						t.Errorf("%+v, %v", got, err)
						return
					}
				}
			})
		}
		const each = 1000
		for posted, read := 0, 0; read < each; {
			if posted < each {
				err := f.ep.Atomic(&fi.Msg{Buf: xdpfab.Bytes[uint64](1), Dest: f.dest, Key: r.Key, Datatype: atomic.Uint64, Op: atomic.Sum, Context: posted}, 0)
				if err == nil {
					posted++
					continue
				}
				if !errors.Is(err, fi.ErrAgain) {
					t.Fatal(err)
				}
			}
			if posted == read {
				continue // the look-ups have all the places
			}
			if err := f.cq.Wait(ctx(t), 1); err != nil {
				t.Fatal(err)
			}
			var done [16]fi.Completion
			n, err := f.cq.Read(done[:])
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range done[:n] {
				if c.Context != read {
					t.Fatalf("completion of %v, want %d", c.Context, read)
				}
				read++
			}
		}
		wg.Wait()
		if word, err := f.region.Uint64(0); err != nil || word.Load() != each {
			t.Errorf("the word is %d, want %d; %v", word.Load(), each, err)
		}
		if n := counter(t, f.client, "sessions_opened"); n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
	})
}

func TestEndpointLookupFails(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 16)
	fresh, err := f.client.NewEndpoint(fi.EndpointAttr{Number: 10})
	if err != nil {
		t.Fatal(err)
	}
	look := func(ep *fi.Endpoint, a fi.Address, name string) error {
		_, err := ep.Lookup(ctx(t), a, name)
		return err
	}
	for _, tt := range []struct{ got, want error }{
		{look(f.ep, f.dest, "absent"), fi.ErrNoRegion},
		{look(f.ep, f.dest, ""), fi.ErrLength},
		{look(f.ep, f.dest+1, "r"), fi.ErrUnknownPeer},
		{look(fresh, f.dest, "r"), fi.ErrNotEnabled},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%v, want %v", tt.got, tt.want)
		}
	}
	// A queue whose completions are not read has no room for a look-up.
	for range 16 {
		if err := f.ep.Atomic(&fi.Msg{Buf: xdpfab.Bytes[uint64](1), Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}, 0); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(ctx(t), 20*time.Millisecond)
	defer cancel()
	if _, err := f.ep.Lookup(short, f.dest, "r"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fi.ErrNotExecuted) {
		t.Errorf("no room: %v, want ErrNotExecuted and the context's error", err)
	}
	if err := f.cq.Wait(ctx(t), 16); err != nil {
		t.Fatal(err)
	}
	if _, err := f.cq.Read(make([]fi.Completion, 16)); err != nil {
		t.Fatal(err)
	}
	if err := look(f.ep, f.dest, "r"); err != nil {
		t.Errorf("room again: %v", err)
	}
	if err := f.av.Remove(f.dest); err != nil {
		t.Fatal(err)
	}
	if err := look(f.ep, f.dest, "r"); !errors.Is(err, fi.ErrUnknownPeer) {
		t.Errorf("removed: %v", err)
	}
}
