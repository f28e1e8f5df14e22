// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/xdpfab/xdpfab/internal/fabrictest"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// fixture is a client and a server with a region "r" of 64 KiB under key 1, and
// a read-only one "ro" under key 2.
type fixture struct {
	client, server *xdpfab.Domain
	mem            []byte
	region         *mr.Region
}

func setUp(t testing.TB, attr xdpfab.DomainAttr, size int) *fixture {
	t.Helper()
	return setUpBoth(t, attr, xdpfab.DomainAttr{}, size)
}

func setUpBoth(t testing.TB, attr, server xdpfab.DomainAttr, size int) *fixture {
	t.Helper()
	f := fabrictest.SetUp(t, attr, server, size)
	return &fixture{f.Client, f.Server, f.Region.Bytes(), f.Region}
}

var (
	ctx           = fabrictest.Context
	progressModes = fabrictest.Modes
)

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.IntN(3)) // so that comparisons succeed
	}
	return b
}
