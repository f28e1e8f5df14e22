// SPDX-License-Identifier: Apache-2.0

// Package skips tests nothing.
package skips

import (
	"testing"
)

func TestOne(t *testing.T) { t.Skip("needs what no guest has") }

func TestOther(t *testing.T) { t.Skip("this too") }
