// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A call whose context had ended says so, and does not blame the home.
func TestContextOver(t *testing.T) {
	w := newWorld(t, 1, 1)
	e := must(NewElection(patient(t), w.at(1, 0), time.Minute))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.Campaign(ctx, 7)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the context had ended: give one that lasts") ||
		strings.Contains(err.Error(), "had not answered") {
		t.Errorf("%v, want that the context had ended", err)
	}
}
