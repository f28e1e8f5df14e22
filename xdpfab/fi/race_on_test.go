// SPDX-License-Identifier: Apache-2.0

//go:build race

package fi_test

// Under the race detector sync.Pool drops items at random, so allocations mean
// nothing.
func init() { raceDetector = true }
