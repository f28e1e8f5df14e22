// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Every counter of an engine has a field, but for the reasons of refusals, which their
// sums count.
func TestStatisticsHaveAllCounters(t *testing.T) {
	all, sums := map[string]uint64{"rx_dropped": 1}, map[string]uint64{}
	var c engine.Counters
	c.Each(func(name string, _ uint64) {
		all[name] = uint64(len(all) + 1)
		for prefix, sum := range map[string]string{"refused_": "packets_refused", "op_refused_": "ops_refused",
			"hello_refused_": "hellos_refused"} {
			if strings.HasPrefix(name, prefix) {
				sums[sum] += all[name]
			}
		}
	})
	s := xdpfab.StatisticsOf(all)
	others := s.Others
	s.Others = nil
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "others")
	for name, n := range all {
		_, other := others[name]
		reason := strings.HasPrefix(name, "request_") || strings.Contains(name, "refused_") || name == "rx_dropped"
		if other != reason || !other && got[name] != float64(n) || other && others[name] != n {
			t.Errorf("%s: in a field %v, among others %v, want %d", name, got[name], others[name], n)
		}
	}
	for name, n := range sums {
		if got[name] != float64(n) {
			t.Errorf("%s: %v, want %d", name, got[name], n)
		}
	}
	if len(sums) != 3 || len(got) != len(all)-len(others)+len(sums) {
		t.Errorf("%d fields for %d counters in fields, and %d sums", len(got), len(all)-len(others), len(sums))
	}
}

// A domain counts what it did.
func TestStatistics(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	_, w := dialWord[uint64](t, f)
	for range 10 {
		if _, err := w.Add(ctx(t), 1); err != nil {
			t.Fatal(err)
		}
	}
	own, err := f.client.Statistics()
	peers, err2 := f.server.Statistics()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if own.OpsSent < 10 || peers.OpsExecuted < 10 || own.SessionsOpened == 0 || peers.SessionsAccepted == 0 {
		t.Errorf("%+v, and %+v of the server", own, peers)
	}
}
