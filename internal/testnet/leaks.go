// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Run runs the tests of a package, for its TestMain, and returns the exit code. That is
// not 0 either if they leave goroutines behind. A goroutine that was told to end may
// take its time on a busy machine: goleak by itself waits half a second.
func Run(m *testing.M) (code int) {
	if code = m.Run(); code != 0 {
		return code
	}
	var err error
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		if err = goleak.Find(); err == nil {
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, "the tests leave goroutines behind:", err)
	return 1
}
