// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Resolve reads an address of a node, whose host may be given by name, as in "host" or
// "host/5" (node of fi_getinfo). A name with several IP addresses means the first one of
// the network: "ip4", "ip6", or "ip" for any.
func Resolve(ctx context.Context, text string, network string) (wire.Addr, error) {
	a, bad := wire.ParseAddr(text)
	host, suffix, numbered := strings.Cut(text, "/")
	if bad == nil || !isName(host) {
		return a, bad
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	if err != nil || len(found) == 0 {
		return a, fmt.Errorf("%w; nor is it the name of a host: %w", bad, err)
	}
	if text = found[0].Unmap().String(); numbered {
		text += "/" + suffix
	}
	return wire.ParseAddr(text)
}

// isName reports whether a host is neither a MAC nor an IP address.
func isName(host string) bool {
	_, err := net.ParseMAC(host)
	_, err2 := netip.ParseAddr(host)
	return host != "" && err != nil && err2 != nil
}
