// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// deafDevice is one whose search for the way to an address takes until its context ends.
type deafDevice struct{ *node.PipeEnd }

func (deafDevice) Link(ctx context.Context, _ wire.Addr) (wire.Link, error) {
	<-ctx.Done()
	return wire.Link{}, context.Cause(ctx)
}

// An insertion under way ends with its context, or with the domain; the vector is in use
// until then.
func TestInsertAsyncEnds(t *testing.T) {
	pa, _ := port.NewMemoryPair(node.PipeMTU, 1)
	f, err := fi.NewFabric(fi.DomainAttr{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := f.Adopt(deafDevice{&node.PipeEnd{Port: pa}})
	if err != nil {
		t.Fatal(err)
	}
	q, _ := f.NewEventQueue(fi.EQAttr{})
	av, _ := d.NewAddressVector()
	if err := d.BindEQ(q); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("tea time")
	ends := []struct {
		end  func(cancel context.CancelCauseFunc)
		want error
	}{
		{func(cancel context.CancelCauseFunc) { cancel(cause) }, cause},
		{func(context.CancelCauseFunc) {
			if err := d.CloseAll(); err != nil {
				t.Error(err)
			}
		}, fi.ErrClosed},
	}
	for _, c := range ends {
		ctx, cancel := context.WithCancelCause(sleepLong(t))
		if err := av.InsertAsync(ctx, []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := av.Close(); !errors.Is(err, fi.ErrBusy) {
			t.Errorf("close of a vector in use: %v, want ErrBusy", err)
		}
		c.end(cancel)
		for i := range 3 {
			if err := q.Wait(sleepLong(t)); err != nil {
				t.Fatal(err)
			}
			if e, failed := q.ReadErr(); failed != (i < 2) || failed && !errors.Is(e.Err, c.want) {
				t.Errorf("event %d: %+v, want %v", i, e, c.want)
			}
		}
		if e, _, err := q.Read(); e.Data != 0 || err != nil {
			t.Errorf("the end: %+v, %v", e, err)
		}
		cancel(nil)
	}
	if err := errors.Join(av.Close(), q.Close(), f.Close()); err != nil {
		t.Error(err)
	}
}
