// SPDX-License-Identifier: Apache-2.0

package route

import "errors"

// The errors that Resolve's errors wrap.
var (
	ErrClosed      = errors.New("resolver is closed")
	ErrNoRoute     = errors.New("no route through this interface")
	ErrNoSource    = errors.New("interface has no address to send from")
	ErrUnreachable = errors.New("neighbour does not answer")
)
