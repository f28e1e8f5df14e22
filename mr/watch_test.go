// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// watched counts what a watcher is told.
type watched struct{ changed, closed int }

func (w *watched) Changed() { w.changed++ }
func (w *watched) Closed()  { w.closed++ }

// A watcher hears of each burst, of the owner's changes, and once of the end, before that
// waits for readers.
func TestWatch(t *testing.T) {
	table := NewTable()
	r, err := table.Register(adopt(t, 4096), Options{Access: RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	r.AddTally(Tally{NonFetching: 1})
	r.Changed() // nobody hears of these two
	w, late := &watched{}, &watched{}
	if r.Watcher() != nil || !r.Watch(w) || r.Watch(late) || r.Watcher() != w {
		t.Error("want one watcher, the first")
	}
	r.AddTally(Tally{Fetching: 3, FetchingBytes: 24})
	r.AddTally(Tally{NonFetching: 1, NonFetchingBytes: 8})
	r.Changed()
	if *w != (watched{changed: 3}) || r.Tally() != (Tally{Fetching: 3, NonFetching: 2, FetchingBytes: 24, NonFetchingBytes: 8}) {
		t.Errorf("%+v after three changes, and a tally of %+v", *w, r.Tally())
	}
	reader := table.NewReader()
	defer reader.Close()
	reader.Enter()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.CloseContext(over); !errors.Is(err, context.Canceled) || *w != (watched{3, 1}) {
		t.Errorf("%v, and %+v, want the end of the context after the news", err, *w)
	}
	reader.Exit()
	if err := r.Close(); err != nil || *w != (watched{3, 1}) || r.Watcher() != nil || r.Watch(late) {
		t.Errorf("%v, and %+v, with a watcher %v", err, *w, r.Watcher())
	}
	r.Changed()
	if *w != (watched{3, 1}) || *late != (watched{}) {
		t.Errorf("%+v and %+v after the end", *w, *late)
	}
}

// The watcher that a region takes while it closes is told of the end, or refused.
func TestWatchWhileClosing(t *testing.T) {
	for range 200 {
		r, err := NewTable().Register(adopt(t, 4096), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var closing sync.WaitGroup
		closing.Go(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
		w := &watched{}
		taken := r.Watch(w)
		closing.Wait()
		if taken != (w.closed == 1) || r.Watcher() != nil {
			t.Fatalf("taken %v, told %d times of the end", taken, w.closed)
		}
	}
}
