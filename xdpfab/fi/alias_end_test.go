// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// An alias that is made while Shutdown begins is either refused, or keeps the endpoint as
// it was: enabled, and not draining for good.
func TestAliasDuringShutdown(t *testing.T) {
	a, b, _ := servedPipe(t)
	defer b.CloseAll()
	defer a.CloseAll()
	times := 1000
	if testing.Short() {
		times = 300
	}
	for range times {
		ep, err := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
		if err := errors.Join(err, ep.Enable()); err != nil {
			t.Fatal(err)
		}
		var begin atomic.Bool
		ended := make(chan error, 1)
		go func() {
			for !begin.Load() {
			}
			ended <- ep.Shutdown(t.Context())
		}()
		runtime.Gosched()
		begin.Store(true)
		alias, refused := ep.Alias(0)
		err = <-ended
		switch {
		case refused != nil && err != nil:
			t.Fatalf("shutdown of an endpoint without an alias: %v", err)
		case refused != nil:
			continue
		case err == nil:
			t.Fatal("the endpoint was closed, and has an alias")
		case !errors.Is(err, fi.ErrBusy) || !ep.Ready():
			t.Fatalf("%v, and the endpoint refuses operations: %t, want ErrBusy and false", err, !ep.Ready())
		}
		if err := errors.Join(alias.Close(), ep.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
