// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Limits of a node's entry. An entry that is over them is refused, so that one node's
// mistake does not fill the memory of all.
const (
	MostName    = 63   // bytes of a node's name, as of a host's (RFC 1123)
	MostAddrs   = 16   // addresses of a node
	MostRegions = 1024 // regions of a node
)

// Node is the entry of one node.
type Node struct {
	// Name is unique in the cluster: letters, digits, and "-", "_", "." between them.
	Name string
	// Addrs are the addresses at which the node serves, as xdpfab.Domain.Dial takes
	// them, the preferred one first: "10.0.0.7", "02:00:00:00:00:0b", "10.0.0.7/5".
	Addrs []string
	// Regions are the names of the regions that the node publishes, in alphabetical
	// order.
	Regions []string
}

// Equal reports whether two entries say the same.
func (n Node) Equal(m Node) bool {
	return n.Name == m.Name && slices.Equal(n.Addrs, m.Addrs) && slices.Equal(n.Regions, m.Regions)
}

// clone returns a copy that shares nothing with n.
func (n Node) clone() Node {
	return Node{n.Name, slices.Clone(n.Addrs), slices.Clone(n.Regions)}
}

// failed is fmt.Errorf with the words that all texts of errors begin with, once.
func failed(format string, args ...any) error { return errno.Line("xdpfab: "+format, args...) }

// Check returns an error that says what is wrong with an entry.
func (n Node) Check() error {
	if err := CheckName(n.Name); err != nil {
		return err
	}
	if len(n.Addrs) == 0 || len(n.Addrs) > MostAddrs {
		return failed("node %s has %d addresses: want 1 to %d", n.Name, len(n.Addrs), MostAddrs)
	}
	for _, a := range n.Addrs {
		if a == "" || strings.ContainsFunc(a, outOfPlace) {
			return failed("node %s has the address %q: want one like 10.0.0.7, without spaces and commas",
				n.Name, a)
		}
		if a[0] == '/' {
			return failed("node %s has the address %q, with nothing before the number of an endpoint: want one "+
				"like 10.0.0.7/5", n.Name, a)
		}
		if wrongIP(a) {
			return failed("node %s has the address %q, which ends in a number and is no IP address: want one like "+
				"10.0.0.7", n.Name, a)
		}
		if _, endpoint, numbered := strings.Cut(a, "/"); numbered {
			if err := wire.CheckEndpoint(endpoint); err != nil {
				return failed("node %s has the address %q: %w", n.Name, a, err)
			}
		}
	}
	if len(n.Regions) > MostRegions {
		return failed("node %s has %d regions: want at most %d", n.Name, len(n.Regions), MostRegions)
	}
	for _, r := range n.Regions {
		if err := CheckRegion(r); err != nil {
			return failed("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// wrongIP reports whether an address is an attempt at an IPv4 address, or an IP address
// with a port: no host's name ends in a number. A MAC address has only colons.
func wrongIP(addr string) bool {
	host, _, _ := strings.Cut(addr, "/")
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == host && strings.Contains(host, ":") || strings.Trim(last, "0123456789:") != "" {
		return false
	}
	_, err := netip.ParseAddr(host)
	return err != nil
}

// CheckRegion returns an error if a region's name cannot stand in an entry. Such a region
// is found by the name of its node alone.
func CheckRegion(name string) error {
	if name == "" || strings.ContainsFunc(name, outOfPlace) {
		return failed("the region %q: want a name without spaces and commas", name)
	}
	return nil
}

// CheckName returns an error that says what is wrong with a node's name.
func CheckName(name string) error {
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
	}
	odd := func(r rune) bool { return !plain(r) && !strings.ContainsRune("-_.", r) }
	if name == "" || len(name) > MostName || strings.ContainsFunc(name, odd) ||
		!plain(rune(name[0])) || !plain(rune(name[len(name)-1])) {
		return failed("%.80q is no name of a node: want 1 to %d letters and digits, with - _ . between them",
			name, MostName)
	}
	return nil
}

// outOfPlace reports whether a character would end an address or a name of a region in
// the text of an entry.
func outOfPlace(r rune) bool {
	return r == ',' || r == '#' || unicode.IsSpace(r) || !unicode.IsPrint(r)
}

// Text returns an entry without its name as one line: the addresses with commas between
// them, and then the regions with spaces: "10.0.0.7,02:00:00:00:00:0b counters scores".
func (n Node) Text() string {
	return strings.Join(append([]string{strings.Join(n.Addrs, ",")}, n.Regions...), " ")
}

// Parse reads what Text wrote.
func Parse(name, text string) (Node, error) {
	words := strings.Fields(text)
	if err := CheckName(name); err != nil {
		return Node{}, err
	}
	if len(words) == 0 {
		return Node{}, failed("node %s has no address: want a line such as: %s 10.0.0.7 counters", name, name)
	}
	n := Node{Name: name, Addrs: strings.Split(words[0], ","), Regions: words[1:]}
	slices.Sort(n.Regions)
	n.Regions = slices.Compact(n.Regions)
	return n, n.Check()
}
