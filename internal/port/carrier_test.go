// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The wait for a carrier ends with the context, with the carrier, and at the latest with
// its limit.
func TestAwait(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	looks := 0
	if err := await(ctx, time.Hour, func() bool { looks++; return looks == 3 }); err != nil || looks != 3 {
		t.Errorf("%v after %d looks", err, looks)
	}
	if err := await(ctx, 0, func() bool { return false }); err != nil {
		t.Errorf("without a carrier: %v", err)
	}
	if err := await(ctx, time.Hour, func() bool { cancel(why); return false }); !errors.Is(err, why) {
		t.Errorf("when the context has ended: %v", err)
	}
}
