// SPDX-License-Identifier: Apache-2.0

// Command vminit is process 1 of a test machine; see package guest.
package main

import "github.com/xdpfab/xdpfab/test/vm/guest"

func main() { guest.Main() }
