// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// A daemon that cannot have resident memory says which region wants it, and why, and
// gives back what it has.
func TestServeWithoutResidence(t *testing.T) {
	cfg := testConfig(t)
	r, err := parseRegion("hot=4KiB:resident")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Regions = append(cfg.Regions, r)
	p := servePipe(t, cfg)
	select {
	case err = <-p.done:
	case <-limited(t).Done():
		t.Fatal("serve does not return")
	}
	if !errors.Is(err, xdpfab.ErrNotImplemented) || !strings.Contains(err.Error(), `resident memory "hot"`) {
		t.Errorf("serve: %v", err)
	}
}
