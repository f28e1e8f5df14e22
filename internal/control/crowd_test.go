// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A program that leaves connections open loses the oldest, and does not keep others out.
func TestOldestConnectionGivesWay(t *testing.T) {
	const most = 3
	path := startService(t, Service{Source: steady, most: most})
	silent := make([]net.Conn, most)
	for i := range silent {
		var err error
		if silent[i], err = net.Dial("unix", path); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = silent[i].Close() })
	}
	var status Status
	if err := dial(t, path).Call(ask(t), "status", nil, &status); err != nil {
		t.Errorf("one more: %v", err)
	}
	if err := silent[0].SetReadDeadline(time.Now().Add(testnet.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := silent[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the oldest: %v, want its end", err)
	}
}
