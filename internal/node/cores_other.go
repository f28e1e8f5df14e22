// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package node

import (
	"runtime"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// checkCores refuses cores: only Linux lets a process choose them.
func checkCores(cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	return errno.Refuse(errno.NotImplemented, "xdpfab: cores %v: want none on %s", cores, runtime.GOOS)
}
