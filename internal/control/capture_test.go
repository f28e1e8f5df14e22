// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/capture"
)

// leaver is the place of a program whose daemon ends before it has answered.
type leaver struct{}

func (leaver) Host(conn *net.UnixConn) {
	var o capture.Options
	_ = Hear(conn, &o)
}
func (leaver) Leave() {}

// A daemon that ends before it has answered is named, and not the end of a connection
// alone.
func TestDaemonEndsBeforeCapture(t *testing.T) {
	path := startService(t, Service{Source: steady, Capture: func(context.Context, Program) (Place, error) {
		return leaver{}, nil
	}})
	_, _, err := dial(t, path).Capture(t.Context(), capture.Options{})
	if err == nil || !errors.Is(err, ErrNoDaemon) || !strings.Contains(err.Error(), "the daemon has ended, or another one took its place") {
		t.Errorf("%v, want the end of the daemon", err)
	}
}
