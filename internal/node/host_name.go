// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Resolve reads an address of a node, whose host may be given by name, as in "host" or
// "host/5" (node of fi_getinfo). A name with several IP addresses means the first one of
// the network: "ip4", "ip6", or "ip" for any.
func Resolve(ctx context.Context, text string, network string) (wire.Addr, error) {
	all, err := ResolveAll(ctx, text, network)
	if err != nil {
		return wire.Addr{}, err
	}
	return all[0], nil
}

// ResolveAll is Resolve with all addresses of a host's name, in the resolver's order. At
// success there is at least one.
func ResolveAll(ctx context.Context, text string, network string) ([]wire.Addr, error) {
	a, bad := wire.ParseAddr(text)
	host, suffix, numbered := strings.Cut(text, "/")
	if bad == nil || !isName(host) {
		return []wire.Addr{a}, bad
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("%w; nor is it the name of a host: %w", bad, err)
	}
	var all []wire.Addr
	for _, ip := range found {
		text := ip.Unmap().WithZone("").String()
		if numbered {
			text += "/" + suffix
		}
		if a, bad = wire.ParseAddr(text); bad == nil {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return nil, bad
	}
	return all, nil
}

// isName reports whether a host can be a name: it is no MAC address, and no attempt at an
// IP address, which has a colon or ends in a number.
func isName(host string) bool {
	last := host[strings.LastIndexByte(strings.TrimSuffix(host, "."), '.')+1:]
	return last != "" && !strings.Contains(host, ":") && strings.Trim(last, "0123456789.") != ""
}
