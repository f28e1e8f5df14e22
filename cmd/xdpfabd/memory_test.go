// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/mr"
)

func TestAllocateAllOrNothing(t *testing.T) {
	good, _ := parseRegion("a=4096")
	bad, _ := parseRegion("b=:backing=/nonexistent/b")
	if mems, err := allocate([]RegionConfig{good, bad}); mems != nil || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `region "b"`) {
		t.Errorf("allocate: %v, %v", mems, err)
	}
	dir, _ := parseRegion("d=:backing=/")
	if _, err := allocate([]RegionConfig{dir}); !errors.Is(err, mr.ErrMemory) {
		t.Errorf("a directory as backing: %v", err)
	}
}
