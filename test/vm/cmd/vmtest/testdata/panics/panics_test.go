// SPDX-License-Identifier: Apache-2.0

// Package panics ends in a panic.
package panics

import (
	"testing"
)

func Test(*testing.T) { panic("as intended") }
