// SPDX-License-Identifier: Apache-2.0

package vm

// ticks reads the processor's time stamp counter.
func ticks() int64
