// SPDX-License-Identifier: Apache-2.0

package show

import "fmt"

// Plural prints a number of things.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
