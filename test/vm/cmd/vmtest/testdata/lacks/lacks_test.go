// SPDX-License-Identifier: Apache-2.0

// Package lacks comes after the machine has gone.
package lacks

import (
	"testing"
)

func Test(*testing.T) {}
