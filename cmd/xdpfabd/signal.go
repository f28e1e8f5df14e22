// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// untilSignal returns a context that ends at SIGTERM or SIGINT. A second one ends
// the process, code 1; the kernel then detaches the XDP program, and the next
// daemon replaces the control socket. SIGHUP is logged and ignored, since nothing
// is read again and a terminal that goes away is no reason to end.
func untilSignal(log *slog.Logger) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case sig := <-signals:
				handle(sig, log, ctx, cancel)
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		wg.Wait()
		cancel()
	}
}

func handle(sig os.Signal, log *slog.Logger, ctx context.Context, cancel func()) {
	switch {
	case sig == unix.SIGHUP:
		log.Warn("SIGHUP ignored: the configuration is read at the start only; restart to change it")
	case ctx.Err() == nil:
		log.Info("closing sessions and giving the interface back", "signal", sig.String())
		cancel()
	default:
		log.Warn("second signal: ending at once", "signal", sig.String())
		os.Exit(exitFailure)
	}
}
