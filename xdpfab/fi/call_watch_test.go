// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A guest's call that waits for its host for longCall prints the stacks of all
// goroutines, those of the host among them. They tell an overloaded machine, where
// goroutines are runnable, from a fault, where they wait for one another.
const longCall = 20 * time.Second

func init() {
	var dumps atomic.Int32
	guestpkg.WatchCall = func(verb string) func() {
		timer := time.AfterFunc(longCall*testnet.Slow, func() {
			if dumps.Add(1) <= 2 { // one shows where all the calls wait
				fmt.Fprintf(os.Stderr, "call %q waits for its host for %v:\n%s\n", verb, longCall*testnet.Slow, testnet.Stacks())
			}
		})
		return func() { timer.Stop() }
	}
}
