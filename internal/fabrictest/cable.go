// SPDX-License-Identifier: Apache-2.0

package fabrictest

import (
	"os"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/internal/udpport"
)

// With XDPFAB_TEST_CABLE=udp the pipes of tests are UDP sockets on a loopback interface.
func init() {
	if os.Getenv("XDPFAB_TEST_CABLE") == "udp" {
		node.Cable = sockets
	}
}

// sockets returns the ends of a pipe that are UDP sockets.
func sockets() (ends [2]node.Device, err error) {
	for i := range ends {
		u := &udpnode.Device{}
		if err := testnet.OnLoopback(func() (err error) {
			portable := os.Getenv("XDPFAB_TEST_PORTABLE") != ""
			u.Device, err = udpport.Open(testnet.LoopbackAddr().String(), udpport.Options{Portable: portable})
			return err
		}); err != nil {
			return ends, err
		}
		ends[i] = u
	}
	return ends, nil
}
