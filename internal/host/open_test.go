// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/xdpfab/xdpfab/internal/node"
)

// narrow is a device on which no engine can run.
type narrow struct{ *node.PipeEnd }

func (narrow) MTU() int { return 1 }

// A host that cannot be opened leaves no goroutine behind, such as the one that writes
// the debug log: a bubble of synctest ends when all of its goroutines have.
func TestFailedOpenLeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, _ := node.NewPipe()
		log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))
		if h, err := New(narrow{end}, node.Config{Log: log}); err == nil {
			t.Error("opened", errors.Join(h.Close()))
		}
	})
}
