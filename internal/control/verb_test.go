// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func steady() (Status, error) { return sample, nil }

// A verb of the daemon's own gets its arguments, and its result or its error comes
// back.
func TestVerb(t *testing.T) {
	double := Verb{"double", func(_ context.Context, arguments json.RawMessage) (any, error) {
		var n int
		if err := json.Unmarshal(arguments, &n); err != nil {
			return nil, errors.New("arguments: want a number")
		}
		return 2 * n, nil
	}}
	c := dial(t, start(t, steady, double))
	var got int
	if err := c.Call(ask(t), "double", 21, &got); err != nil || got != 42 {
		t.Errorf("%d, %v", got, err)
	}
	for want, call := range map[string]func() error{
		": arguments: want a number": func() error { return c.Call(ask(t), "double", "x", &got) },
		`: unknown verb "treble": want one of double, kept, metrics, regions, status`: func() error { return c.Call(ask(t), "treble", 1, &got) },
		": arguments 1: want none": func() error { return c.Call(ask(t), "status", 1, &got) },
		"double: result: ":         func() error { var s Status; return c.Call(ask(t), "double", 21, &s) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
