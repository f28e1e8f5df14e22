// SPDX-License-Identifier: Apache-2.0

// Package hangs never ends.
package hangs

import (
	"testing"
)

func Test(*testing.T) { select {} }
