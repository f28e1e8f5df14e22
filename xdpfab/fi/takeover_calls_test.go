// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"fmt"
	goatomic "sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Calls that the function of a guest has, or that wait for it, go on through takeovers of
// its daemon. Each reply reaches its caller, and the function has each request once.
func TestTakeoverWithCalls(t *testing.T) {
	s, b := newSuccession(t)
	g := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	const slow = 20
	may, has := make(chan struct{}), make(chan struct{}, slow)
	var runs goatomic.Int32
	if _, err := g.Handle(xdpfab.HandlerAttr{Number: 5, Goroutines: slow / 2},
		func(_ context.Context, _ xdpfab.Sender, request []byte) ([]byte, error) {
			runs.Add(1)
			if request[0] == 's' {
				has <- struct{}{}
				<-may
			}
			return append([]byte("re "), request...), nil
		}); err != nil {
		t.Fatal(err)
	}
	p, err := b.Dial(ctx(t), g.Name(5))
	if err != nil {
		t.Fatal(err)
	}
	call := func(request string) error {
		reply := make([]byte, 40)
		n, err := p.Call(ctx(t), []byte(request), reply)
		if err == nil && string(reply[:n]) != "re "+request {
			err = fmt.Errorf("the reply is %q", reply[:n])
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", request, err)
		}
		return err
	}
	ends := make(chan error, slow)
	for i := range slow {
		go func() { ends <- call(fmt.Sprint("slow ", i)) }()
	}
	for range slow / 2 {
		<-has
	}
	s.next()
	s.next()
	close(may)
	for range slow {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	for i := range 100 {
		if i == 50 {
			s.next()
		}
		if err := call(fmt.Sprint("fast ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := runs.Load(); n != slow+100 {
		t.Errorf("the function had %d requests, want %d", n, slow+100)
	}
	if err := b.CloseAll(); err != nil {
		t.Error(err)
	}
}
