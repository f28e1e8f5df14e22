// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Every method that returns an error returns one for a nil object and for a zero value,
// and a method with a context returns one for a nil context. None panics.
func TestNilAndZero(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	inTests := "Again AtomicValid ClaimEntry Claim DialEndpoint Drain Peer PeerAt Adopt Inherit Next" // of export_test.go, or below
	for _, object := range []any{(*fi.Fabric)(nil), (*fi.Domain)(nil), &fi.Domain{}, (*fi.Endpoint)(nil), &fi.Endpoint{},
		(*fi.CompletionQueue)(nil), &fi.CompletionQueue{}, (*fi.Counter)(nil), &fi.Counter{}, (*fi.AddressVector)(nil),
		&fi.AddressVector{}, (*fi.EventQueue)(nil), &fi.EventQueue{}, (*fi.PollSet)(nil), &fi.PollSet{},
		(*fi.PassiveEndpoint)(nil), &fi.PassiveEndpoint{}, (*fi.ScalableEndpoint)(nil), &fi.ScalableEndpoint{},
		(*fi.SharedTransmit)(nil), &fi.SharedTransmit{}, (*fi.SharedReceive)(nil), &fi.SharedReceive{}} {
		v := reflect.ValueOf(object)
		for i := range v.NumMethod() {
			m, name := v.Method(i), v.Type().Method(i).Name
			out := m.Type().NumOut()
			if out == 0 || m.Type().Out(out-1) != reflect.TypeFor[error]() || strings.Contains(inTests, name) {
				continue
			}
			err, _ := call(m, t.Context())[out-1].Interface().(error)
			what := v.Type().Elem().Name()
			if !errors.Is(err, fi.ErrClosed) || !strings.Contains(err.Error(), "the "+what+" is nil or a zero value: want one of ") {
				t.Errorf("%s.%s: %v", what, name, err)
			}
		}
	}
	// what is given may be nil as well
	ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err != nil {
		t.Fatal(err)
	}
	set, err := f.client.NewPollSet()
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"CompletionQueue": ep.Bind((*fi.CompletionQueue)(nil), 0), "Counter": ep.Bind(&fi.Counter{}, fi.BindRead),
		"AddressVector": ep.Bind((*fi.AddressVector)(nil), 0), "EventQueue": ep.Bind((*fi.EventQueue)(nil), 0),
		"SharedTransmit": ep.Bind((*fi.SharedTransmit)(nil), 0), "SharedReceive": ep.Bind((*fi.SharedReceive)(nil), 0),
		"Counter ": set.Add((*fi.Counter)(nil), nil),
	} {
		if what = strings.TrimSpace(what); !errors.Is(err, fi.ErrClosed) || !strings.Contains(err.Error(), "the "+what+" is nil") {
			t.Errorf("%s: %v", what, err)
		}
	}
	var none context.Context
	for what, object := range map[string]any{"endpoint": f.ep, "queue": f.cq, "vector": f.av, "domain": f.client.Domain, "set": set,
		"fabric": f.client.Fabric()} {
		v := reflect.ValueOf(object)
		for i := range v.NumMethod() {
			m, name := v.Method(i), v.Type().Method(i).Name
			if m.Type().NumIn() == 0 || m.Type().In(0) != reflect.TypeFor[context.Context]() || strings.Contains(
				"Connect Accept WaitWord OpenInfo Again", name) { // these refuse other arguments first
				continue
			}
			got := call(m, none)
			if err, _ := got[len(got)-1].Interface().(error); !errors.Is(err, fi.ErrArgument) ||
				!strings.Contains(err.Error(), "the context is nil") {
				t.Errorf("%s of a %s: %v", name, what, err)
			}
		}
	}
	if _, err := fi.GetInfo(none, nil); !errors.Is(err, fi.ErrArgument) {
		t.Errorf("GetInfo: %v", err)
	}
	for _, fabric := range []*fi.Fabric{{}, f.client.Fabric()} {
		if _, err := fabric.OpenInfo(t.Context(), nil, fi.DomainAttr{}); !errors.Is(err, fi.ErrNoInfo) ||
			!strings.Contains(err.Error(), "no info is given: want one that GetInfo returned") {
			t.Errorf("OpenInfo: %v", err)
		}
	}
	if _, err := f.client.NewEndpoint(fi.EndpointAttr{Type: fi.EndpointMsg, Request: &fi.ConnRequest{}}); err == nil {
		t.Error("an endpoint for a request that no peer has made")
	}
	for _, r := range []*fi.ConnRequest{nil, {}} {
		if info := r.Info(); info.Handle != nil || r.Peer() == "" {
			t.Errorf("%v from %q", info, r.Peer())
		}
	}
}

// call calls a method with a context, with strings that are not empty, with ones, and
// otherwise with zero values.
func call(m reflect.Value, with context.Context) []reflect.Value {
	var in []reflect.Value
	for i := range m.Type().NumIn() {
		v := reflect.New(m.Type().In(i)).Elem()
		switch {
		case m.Type().IsVariadic() && i == m.Type().NumIn()-1:
			continue
		case v.Type() == reflect.TypeFor[context.Context]() && with != nil:
			v.Set(reflect.ValueOf(with))
		case v.Kind() == reflect.String:
			v.SetString("x")
		case v.Kind() == reflect.Int:
			v.SetInt(1)
		}
		in = append(in, v)
	}
	return m.Call(in)
}
