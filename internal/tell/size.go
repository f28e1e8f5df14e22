// SPDX-License-Identifier: Apache-2.0

package tell

import (
	"regexp"
	"strings"
)

// decimal is a size whose unit is that of a disk, or is cut short.
var decimal = regexp.MustCompile(`^([0-9]+) ?([kKmMgGtT])[iI]?[bB]?$`)

// LikeSize is a question to put behind a size whose unit nobody knows: whether one of the
// units that are powers of 1024 was meant. It is empty if none is close.
func LikeSize(s string) string {
	part := decimal.FindStringSubmatch(s)
	if part == nil {
		return ""
	}
	return ", did you mean " + part[1] + strings.ToUpper(part[2]) + "iB?"
}
