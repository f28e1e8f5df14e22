// SPDX-License-Identifier: Apache-2.0

package errno

import "syscall"

// Invented is the bit of numbers that Go has made, since Windows lacks them.
const Invented = syscall.APPLICATION_ERROR

// Name returns nothing: Windows has no names for them.
func Name(syscall.Errno) string { return "" }
