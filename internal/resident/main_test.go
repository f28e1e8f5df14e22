// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"fmt"
	"os"
	"testing"
)

// victim is set to a folder in processes that a test starts to kill.
const victim = "XDPFAB_TEST_VICTIM"

func TestMain(m *testing.M) {
	if folder := os.Getenv(victim); folder != "" {
		fmt.Println(suffer(folder)) // returns only if something is wrong
		os.Exit(1)
	}
	os.Exit(m.Run())
}
