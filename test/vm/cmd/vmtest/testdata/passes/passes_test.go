// SPDX-License-Identifier: Apache-2.0

// Package passes passes.
package passes

import (
	"testing"
)

func Test(*testing.T) {}
