// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The reader of JSON reads what the daemon writes, and nothing beyond texts that are
// damaged or cut.
func TestJSON(t *testing.T) {
	const rounds = 20000
	seed := rand.Uint32()
	out := run(t, nil, build(t, sanitized, "json_test", "json.c"), fmt.Sprint(rounds), fmt.Sprint(seed))
	if got := strings.TrimSpace(string(out)); got != "ok" {
		t.Errorf("seed %d: %q", seed, got)
	}
}
