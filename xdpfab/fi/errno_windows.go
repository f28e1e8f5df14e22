// SPDX-License-Identifier: Apache-2.0

package fi

import "syscall"

const invented = syscall.APPLICATION_ERROR

// errnoName returns nothing: Windows has no names for them.
func errnoName(syscall.Errno) string { return "" }
