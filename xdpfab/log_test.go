// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/internal/fabrictest"
	"github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// lines is a log that tests read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// A guest logs that its daemon has ended, and once why the next one does not take it in:
// here since that allows less memory than the guest has.
func TestGuestLogsRefusal(t *testing.T) {
	first, near, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	second, far, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, d := range []*xdpfab.Domain{first, near, second, far} {
			_ = d.CloseAll()
		}
	})
	dial := fabrictest.Hosting(t, first.Domain)
	next := fabrictest.Hosting(t, second.Domain, host.GuestLimits{Memory: 4096})
	var tries atomic.Int32
	talk, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := guest.Attach(t.Context(), talk, "test", func(ctx context.Context) (*share.Talk, error) {
		tries.Add(1)
		return next(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	g, err := fabrictest.On(dev, xdpfab.DomainAttr{Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.CloseAll() })
	if _, err := g.NewRegion("big", 64<<10); err != nil {
		t.Fatal(err)
	}
	if log.count("daemon") != 0 {
		t.Errorf("logged without a cause: %s", &log.text)
	}
	if err := first.CloseAll(); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "it has been refused several times", func() bool { return tries.Load() > 3 })
	if ended, refused := log.count("has ended"), log.count("does not take in"); ended != 1 || refused != 1 || log.count("cause=") != 1 {
		t.Errorf("logged %d ends and %d refusals, want 1 each: %s", ended, refused, &log.text)
	}
}
