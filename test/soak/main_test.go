// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package soak breaks the network, the nodes and the machine's time under real
// AF_XDP sockets and checks the promise: every operation posted completes once,
// and its completion tells what happened in the memory.
//
// The nodes sit at both ends of package faultwire's cable. [actor] posts and keeps
// books; ledger compares the books with the memory. The short tests take one kind
// of trouble each; TestSoak draws scenarios at random for a given time. Half of its
// worlds have resident regions, where the kernel can have them:
//
//	go test ./test/soak -v -run TestSoak -minutes 3 -timeout 0
//	go test ./test/soak -v -run TestSoak -minutes 3 -seed 12345   # repeat a draw
//	go test ./test/soak -v -run 'TestSoak/^resident' -minutes 3   # one scenario
package soak

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

var (
	minutes = flag.Float64("minutes", 0, "how long TestSoak goes on; 0 skips it")
	seed    = flag.Uint64("seed", 0, "of TestSoak's scenarios; 0 draws one")
)

// guise, an environment variable, makes the test binary one of the processes
// that the tests kill, or with which they load the machine.
const guise = "XDPFAB_SOAK_GUISE"

var guises = map[string]func() error{"client": clientMain, "hog": hogMain, "member": memberMain, "guest": guestMain, "rogue": rogueMain, "sharer": sharerMain}

// scratch holds the daemon's binary; made at first use.
var scratch string

func TestMain(m *testing.M) {
	if run := guises[os.Getenv(guise)]; run != nil {
		go func() { // this process ends with the test, even if that is killed
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(3)
		}()
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// Parallel tests wait for a give-up time, and take no core meanwhile.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := testnet.Run(m)
	if scratch != "" {
		_ = os.RemoveAll(scratch)
	}
	os.Exit(code)
}

// patience is the time after which an event that has to happen counts as
// hanging. No other verdict depends on time.
const patience = 90 * time.Second

// lively is the give-up time of a client whose peer is alive, however busy the
// machine is.
const lively = time.Minute

// limited returns a context that ends with the test or after patience.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// daemonBinary builds xdpfabd once.
var daemonBinary = sync.OnceValues(func() (string, error) {
	var err error
	if scratch, err = os.MkdirTemp("", "xdpfab-soak-"); err != nil {
		return "", err
	}
	return filepath.Join(scratch, "xdpfabd"), testnet.Programs(scratch, "xdpfabd")
})

// hogMain keeps a core busy for a while.
func hogMain() error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
	}
	return nil
}
