// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A request that no peer has made is refused.
func TestEmptyRequest(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	r := &fi.ConnRequest{}
	if _, err := a.NewEndpoint(fi.EndpointAttr{Type: fi.EndpointMsg, Request: r}); !errors.Is(err, fi.ErrForeign) {
		t.Errorf("endpoint for an empty request: %v, want ErrForeign", err)
	}
	if r.Info().Handle != nil || r.Peer() == "" {
		t.Errorf("an empty request says %+v of %q", r.Info(), r.Peer())
	}
}

// Whether a domain can be handed over may be asked while endpoints are made (go test
// -race).
func TestCanHandOverMeanwhile(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	av, err := a.NewAddressVector()
	if err != nil {
		t.Fatal(err)
	}
	cq, err := a.NewCompletionQueue(fi.CQAttr{})
	if err != nil {
		t.Fatal(err)
	}
	var making sync.WaitGroup
	for range 4 {
		making.Go(func() {
			for range 20 {
				ep, err := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Size: 16})
				if err == nil {
					err = errors.Join(ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable())
				}
				if err == nil {
					err = a.Hosting().CanHandOver()
				}
				if !errors.Is(err, fi.ErrNotImplemented) {
					t.Errorf("%v; want ErrNotImplemented, since the endpoint posts", err)
				}
				if err := ep.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	making.Wait()
	if err := a.Hosting().CanHandOver(); err != nil {
		t.Errorf("when they are closed: %v", err)
	}
}

// A program may make passive endpoints while it takes regions back (go test -race): the
// key of one is that of the table which it has from then on, or nothing is taken back.
func TestTakeBackMeanwhile(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	dial := hostingOf(t, a, mayKeep)
	g, _ := keeper(t, dial)
	for range 8 {
		if err := g.CloseAll(); err != nil {
			t.Fatal(err)
		}
		untilLeft(t, a)
		g = guestBy(t, dial, fi.DomainAttr{}, nil)
		var made sync.WaitGroup
		made.Go(func() {
			if _, err := g.NewPassiveEndpoint(fi.PassiveAttr{Number: fi.AnyNumber, AuthKey: fi.AuthKey("red")}); err != nil {
				t.Error(err)
			}
		})
		_, err := g.TakeBack("mine")
		made.Wait()
		if err != nil && !errors.Is(err, fi.ErrBusy) {
			t.Errorf("%v; want nil, or ErrBusy", err)
		}
	}
}
