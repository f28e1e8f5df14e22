// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package progress

import "runtime"

// yieldCPU lets another goroutine run: only Linux lets a process give away a CPU.
func yieldCPU() { runtime.Gosched() }
