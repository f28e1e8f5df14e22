// SPDX-License-Identifier: Apache-2.0

// Package killed is killed.
package killed

import (
	"os"
	"syscall"
	"testing"
)

func Test(*testing.T) { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
