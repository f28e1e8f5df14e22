// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Messages and transfers of more than 4 GiB arrive as a whole.
func TestLongest(t *testing.T) {
	if os.Getenv("XDPFAB_LONG") == "" {
		t.Skip("takes minutes, and a GiB of memory: make test-long")
	}
	defer func(usual time.Duration) { patience = usual }(patience)
	patience *= 6
	w := newWorldOn(t, testnet.Options{MTU: 3498})
	path := w.program("longest")
	a := w.start(0, path, "101", w.net.B.IP4.String(), "102", "sends")
	b := w.start(1, path, "102", w.net.A.IP4.String(), "101", "takes")
	for _, p := range []*running{a, b} {
		if got := w.line(p); got != "ready" {
			t.Fatal(got)
		}
	}
	for _, p := range []*running{a, b} {
		fmt.Fprintln(p.in)
	}
	for _, p := range []*running{a, b} {
		if got := w.end(p); got != "ok" {
			t.Errorf("said %q", got)
		}
	}
}
