// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Verb is something that a daemon can be asked to do. Do is called by several
// goroutines at once; its result is sent as JSON.
type Verb struct {
	Name string
	Do   func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// Look makes a verb that takes no arguments and changes nothing.
func Look[T any](name string, look func() (T, error)) Verb {
	return Verb{name, func(_ context.Context, arguments json.RawMessage) (any, error) {
		if len(arguments) > 0 {
			return nil, fmt.Errorf("arguments %s: want none", arguments)
		}
		return look()
	}}
}

// Verbs are those that every daemon has: "status" returns a Status, "regions" a
// []Region, "kept" a []Kept, "metrics" the text that Prometheus reads.
func Verbs(source Source, detail func() Detail) []Verb {
	return []Verb{
		Look("status", source),
		Look("regions", func() ([]Region, error) {
			s, err := source()
			return s.Regions, err
		}),
		Look("kept", func() ([]Kept, error) {
			s, err := source()
			return s.Kept, err
		}),
		Look("metrics", func() (string, error) { return metricsText(source, detail) }),
	}
}

// polled are the verbs that pollers answer.
var polled = []string{"status", "regions", "kept", "metrics", "peers"}

// attend has these fail while a poller hangs, which the error names.
func attend(verbs []Verb, alive *shared[bool]) {
	for i, v := range verbs {
		if !slices.Contains(polled, v.Name) {
			continue
		}
		verbs[i].Do = func(ctx context.Context, arguments json.RawMessage) (any, error) {
			if _, err := alive.get(ctx); err != nil {
				return nil, err
			}
			return v.Do(ctx, arguments)
		}
	}
}

// run does what a request asks for.
func run(ctx context.Context, verbs []Verb, r *Request) (any, error) {
	if r.Version != ProtocolVersion {
		return nil, &refusal{fmt.Errorf("control protocol %d: this daemon speaks %d; use the client of its release",
			r.Version, ProtocolVersion)}
	}
	i := slices.IndexFunc(verbs, func(v Verb) bool { return v.Name == r.Verb })
	if i < 0 {
		return nil, &refusal{fmt.Errorf("unknown verb %q: want one of %s", r.Verb, names(verbs))}
	}
	return verbs[i].Do(ctx, r.Arguments)
}

// refusal is an error of a request that the daemon does not understand.
type refusal struct{ error }

func names(verbs []Verb) string {
	var all []string
	for _, v := range verbs {
		all = append(all, v.Name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
