// SPDX-License-Identifier: Apache-2.0

// Package recipes has the recipes of docs/restarts.md as they are printed there, so
// that the tests of test/e2e run them against daemons that die.
package recipes

import (
	"context"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// Admit reports whether a request may pass. The word counts those of one period.
func Admit(ctx context.Context, used xdpfab.Remote[uint64], quota uint64) bool {
	n, err := used.Add(ctx, 1)
	return err == nil && n <= quota
}

// Grown returns by how much a counter has grown since a reader last looked.
func Grown(last, now uint64) uint64 {
	if now < last {
		return now // it has begun again
	}
	return now - last
}

// Wrote reports whether an attempt to write a token has run that met a restart.
func Wrote(ctx context.Context, word xdpfab.Remote[uint64], token uint64) (bool, error) {
	if err := word.Rebind(ctx); err != nil {
		return false, err
	}
	now, err := word.Load(ctx)
	return now == token, err
}
