// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A host's name can mean several addresses, as that of a headless Service of Kubernetes
// does; each of them gets the endpoint number.
func TestResolveAll(t *testing.T) {
	hosts := testnet.NewHosts(t)
	const service, pod = "counters.shop.svc.cluster.local", "counters-0.counters.shop.svc.cluster.local"
	hosts.Set(service, netip.MustParseAddr("127.0.0.7"), netip.MustParseAddr("127.0.0.8"))
	hosts.Set(pod, netip.MustParseAddr("127.0.0.7"))
	resolve := func(text string) string {
		t.Helper()
		all, err := node.ResolveAll(context.Background(), text, "ip")
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, a := range all {
			texts = append(texts, a.String())
		}
		slices.Sort(texts)
		return strings.Join(texts, " ")
	}
	for text, want := range map[string]string{
		service + ".": "127.0.0.7 127.0.0.8", service + "./5": "127.0.0.7/5 127.0.0.8/5", pod + ".": "127.0.0.7", "10.0.0.7": "10.0.0.7",
	} {
		if got := resolve(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	hosts.Set(pod, netip.MustParseAddr("127.0.0.9")) // it was restarted
	if got := resolve(pod + "."); got != "127.0.0.9" {
		t.Errorf("%s: %s, want its new address", pod, got)
	}
	dns := new(net.DNSError)
	if _, err := node.ResolveAll(context.Background(), "absent.shop.svc.cluster.local.", "ip"); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("%v, want that there is no such host", err)
	}
}
