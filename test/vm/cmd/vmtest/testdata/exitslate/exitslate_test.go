// SPDX-License-Identifier: Apache-2.0

// Package exitslate ends with an exit code that its last word belies.
package exitslate

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	m.Run()
	os.Exit(4)
}

func Test(*testing.T) {}
