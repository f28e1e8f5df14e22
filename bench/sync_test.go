// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "testing"

// Each aim is judged by contests that there are, under ids of their own.
func TestSyncAims(t *testing.T) {
	ids := map[string]bool{}
	for _, e := range append(fullPlan(sampleTime), syncPlan()...) {
		if ids[e.id] {
			t.Errorf("two contests have the id %s", e.id)
		}
		ids[e.id] = true
	}
	for _, a := range syncAims(&results{plan: syncPlan()}) {
		if a.Met || a.Why == "" {
			t.Errorf("%s: met %t without a measurement, because of %q", a.What, a.Met, a.Why)
		}
		for _, id := range a.contests {
			if len(pick(syncPlan(), id)) != 1 {
				t.Errorf("%s is judged by %s, which is no contest", a.What, id)
			}
		}
	}
}
