// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/version"
)

// What a session is to the process that goes on with it. A process of the version before
// passes over what it does not know, and may run a frame again: see host.HandoverVersion.
// It may pass over Ends: then those operations have an unknown outcome.
func TestStateKeepsItsShape(t *testing.T) {
	const want = "4e1835b73f493af4"
	if got, lines := version.Shape(sessionState{}); got != want {
		t.Errorf("the shape is %s, was %s: raise host.HandoverVersion, and note it here\n%s", got, want, lines)
	}
}
