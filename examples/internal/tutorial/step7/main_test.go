// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// The last step serves until its context ends, and prints what the page says.
func TestStep7(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := try.New(t, "", 0)
	said, says := io.Pipe()
	defer said.Close()
	ctx, stop := context.WithCancel(try.Context(t))
	served := make(chan error, 1)
	go func() { served <- serve(ctx, n.Home, says) }()
	line := make([]byte, 256)
	k, err := said.Read(line)
	addr, is := strings.CutPrefix(string(line[:k]), "serving at ")
	if err != nil || !is {
		t.Fatalf("it says %q, %v", line[:k], err)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	var out strings.Builder
	if err := ask(try.Context(t), n.Client, strings.TrimSpace(addr), &out); err != nil {
		t.Fatal(err)
	}
	if line := strings.TrimSpace(out.String()); !strings.Contains(string(page), "\n    "+line+"\n") {
		t.Errorf("step 7 prints %q, which the tutorial does not", line)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
