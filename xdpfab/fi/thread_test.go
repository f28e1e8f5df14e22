// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// serveRegion makes an endpoint that can be addressed, and a region with key 1.
func serveRegion(t *testing.T, d *xdpfab.Domain) []byte {
	t.Helper()
	r, err := d.NewRegion("r", 4096)
	if err != nil {
		t.Fatal(err)
	}
	ep, err := d.NewEndpoint(fi.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	return r.Bytes()
}

// A domain whose caller makes no two calls at a time does all that others do: by typed
// handles, by posts, with contexts that end, until it is closed.
func TestThreadDomain(t *testing.T) {
	near, far, _ := watchedPipe(t, fi.DomainAttr{Progress: fi.ProgressManual, Threading: fi.ThreadDomain}, fi.DomainAttr{})
	mem := serveRegion(t, far)
	ctx := t.Context()
	peer, err := near.Dial(ctx, far.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	word, err := xdpfab.Word[uint64](ctx, peer, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(300) {
		if n, err := word.Add(ctx, 1); err != nil || n != i+1 {
			t.Fatalf("add %d: %d, %v", i, n, err)
		}
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := peer.Watch(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a watch whose context ends: %v", err)
	}
	ep, _ := near.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Size: 64})
	av, _ := near.NewAddressVector()
	cq, _ := near.NewCompletionQueue(fi.CQAttr{Size: 64})
	if err := errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	dest, err := av.Insert(ctx, far.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ep.Lookup(ctx, dest, "r")
	if err != nil {
		t.Fatal(err)
	}
	m := fi.Msg{Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Result: make([]byte, 8), Dest: dest, Key: r.Key, Offset: r.Base, Datatype: atomic.Uint64, Op: atomic.Sum}
	var c [16]fi.Completion
	for posted, done := 0, 0; done < 5000; {
		if posted < 5000 {
			switch err := ep.FetchAtomic(&m, fi.FlagMore); {
			case err == nil:
				posted++
				continue
			case !errors.Is(err, fi.ErrAgain):
				t.Fatal(err)
			}
		}
		n, err := cq.Read(c[:])
		if err != nil {
			t.Fatal(err)
		}
		done += n
	}
	if got := binary.LittleEndian.Uint64(mem); got != 5300 {
		t.Errorf("the word is %d, want 5300", got)
	}
	if err := errors.Join(ep.Shutdown(ctx), peer.Close(), near.CloseAll()); err != nil {
		t.Error(err)
	}
	if _, err := word.Add(ctx, 1); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("after the end: %v, want ErrClosed", err)
	}
}

// When the interface of such a domain is lost, the call that waits ends with the cause,
// and so does the next one; nothing runs beside the caller.
func TestThreadDomainLost(t *testing.T) {
	for name, wait := range map[string]func(word xdpfab.Remote[uint64], peer *xdpfab.Peer) error{
		"add": func(word xdpfab.Remote[uint64], _ *xdpfab.Peer) error {
			_, err := word.Add(context.Background(), 1)
			return err
		},
		"watch": func(_ xdpfab.Remote[uint64], peer *xdpfab.Peer) error { return peer.Watch(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			near, far, dev := watchedPipe(t, fi.DomainAttr{Progress: fi.ProgressManual, Threading: fi.ThreadDomain, GiveUp: time.Hour}, fi.DomainAttr{})
			serveRegion(t, far)
			peer, err := near.Dial(t.Context(), far.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			word, err := xdpfab.Word[uint64](t.Context(), peer, "r", 0)
			if err != nil {
				t.Fatal(err)
			}
			dev.Port.SetFaults(port.Faults{Loss: 1})
			time.AfterFunc(20*time.Millisecond, func() { dev.tell(cutOff) })
			for range 2 {
				if err := wait(word, peer); !errors.Is(err, fi.ErrInterfaceLost) {
					t.Errorf("%v, want ErrInterfaceLost", err)
				}
			}
			if err := near.CloseAll(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The model in force is told: with a poller there is another goroutine anyway.
func TestThreadingInForce(t *testing.T) {
	for _, x := range []struct {
		progress fi.ProgressMode
		asked    fi.Threading
		want     fi.Threading
	}{
		{fi.ProgressManual, fi.ThreadDomain, fi.ThreadDomain}, {fi.ProgressAuto, fi.ThreadDomain, fi.ThreadSafe},
		{fi.ProgressManual, fi.ThreadCompletion, fi.ThreadSafe}, {fi.ProgressManual, fi.ThreadUnspec, fi.ThreadSafe},
	} {
		a, _, _ := watchedPipe(t, fi.DomainAttr{Progress: x.progress, Threading: x.asked}, fi.DomainAttr{})
		if got := a.Attr().Threading; got != x.want {
			t.Errorf("%v progress, %v: %v in force, want %v", x.progress, x.asked, got, x.want)
		}
	}
	if _, _, err := xdpfab.Pipe(fi.DomainAttr{Threading: 99}); err == nil {
		t.Error("threading 99 is accepted")
	}
}
