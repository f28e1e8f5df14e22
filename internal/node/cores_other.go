// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package node

import (
	"fmt"
	"runtime"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// checkCores refuses cores: only Linux lets a process choose them.
func checkCores(cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	return fmt.Errorf("xdpfab: cores %v: want none on %s: %w", cores, runtime.GOOS, errno.NotImplemented)
}
