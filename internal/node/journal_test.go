// SPDX-License-Identifier: Apache-2.0

package node

import (
	"io"
	"log/slog"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// narrowDevice has an MTU that no engine takes.
type narrowDevice struct{ Device }

func (narrowDevice) Ports() []engine.Port { return make([]engine.Port, 1) }

func (narrowDevice) MTU() int { return 1 }

// A node that cannot run leaves no journal at work.
func TestJournalOfFailure(t *testing.T) {
	n := New(narrowDevice{}, nil)
	n.Config.Log = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := n.Run(1, 0); err == nil {
		t.Fatal("it runs with an MTU of 1 byte")
	}
	if n.journal == nil {
		t.Fatal("the node has no journal at level debug")
	}
	select {
	case <-n.journal.stop:
		n.journal.end.Wait()
	default:
		t.Error("the journal goes on")
	}
}
