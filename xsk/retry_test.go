// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// A queue that comes free late is taken soon, and one that does not is waited for no
// longer than was wanted.
func TestRetry(t *testing.T) {
	for _, free := range []time.Duration{0, 600 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			const patience = 3 * time.Second
			began := time.Now()
			err := retry(patience, unix.EBUSY, func() error {
				if time.Since(began) < free {
					return unix.EBUSY
				}
				return nil
			})
			if took := time.Since(began); (err == nil) != (free < patience) || took > min(free, patience)+seldom || took < min(free, patience) {
				t.Errorf("free after %v: %v after %v", free, err, took)
			}
		})
	}
}
