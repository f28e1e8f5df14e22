// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// The first step prints what the page says.
func TestStep1(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := demo(try.Context(t), &out); err != nil {
		t.Fatal(err)
	}
	if line := strings.TrimSpace(out.String()); !strings.Contains(string(page), "\n    "+line+"\n") {
		t.Errorf("step 1 prints %q, which the tutorial does not", line)
	}
}
