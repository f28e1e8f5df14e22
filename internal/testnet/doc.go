// SPDX-License-Identifier: Apache-2.0

// Package testnet gives a test its own two-node network: namespaces and a veth
// pair from package veth, removed when the test ends, passed or failed.
//
//	p := testnet.NewPair(t, testnet.Options{Queues: 2})
//	err := p.A.Do(func() error { … open a socket on p.A.IfIndex … })
//
// It is for tests only.
package testnet
