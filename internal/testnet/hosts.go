// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// Hosts is the only name server that the process knows while a test runs.
type Hosts struct {
	mu    sync.Mutex
	addrs map[string][]netip.Addr // IPv4
}

// NewHosts has net.DefaultResolver ask a name server in memory until the test ends. Tests
// beside it must not resolve names.
func NewHosts(t testing.TB) *Hosts {
	h := &Hosts{addrs: map[string][]netip.Addr{}}
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go h.serve(there)
		return here, nil
	}}
	t.Cleanup(func() { net.DefaultResolver = before })
	return h
}

// Set gives a host IPv4 addresses in place of those that it had.
func (h *Hosts) Set(host string, addrs ...netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addrs[host] = addrs
}

// serve answers the queries of a connection (RFC 1035, section 4.2.2), which the resolver
// closes.
func (h *Hosts) serve(c net.Conn) {
	defer c.Close()
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, query); err != nil || len(query) < headerSize {
			return
		}
		answer := h.answer(query)
		binary.BigEndian.PutUint16(length[:], uint16(len(answer)))
		if _, err := c.Write(append(length[:], answer...)); err != nil {
			return
		}
	}
}

// Fields of messages (RFC 1035, section 4.1).
const (
	headerSize   = 12
	answerFlags  = 0x8580 // a response, authoritative, recursion desired and available
	noSuchName   = 3
	typeA        = 1
	classIN      = 1
	questionName = 0xc000 | headerSize // a pointer to it
)

// answer returns the response to a query of one question.
func (h *Hosts) answer(query []byte) []byte {
	var labels []string
	at := headerSize
	for at < len(query) && query[at] > 0 && at+1+int(query[at]) < len(query) {
		labels = append(labels, string(query[at+1:at+1+int(query[at])]))
		at += 1 + int(query[at])
	}
	end := min(at+5, len(query)) // of the question: the root's label, type and class
	h.mu.Lock()
	addrs, known := h.addrs[strings.ToLower(strings.Join(labels, "."))]
	h.mu.Unlock()
	flags := uint16(answerFlags)
	if !known {
		flags |= noSuchName
	}
	if end-at < 5 || binary.BigEndian.Uint16(query[at+1:]) != typeA {
		addrs = nil
	}
	b := append([]byte{}, query[:2]...) // the query's number
	for _, n := range []uint16{flags, 1, uint16(len(addrs)), 0, 0} {
		b = binary.BigEndian.AppendUint16(b, n)
	}
	b = append(b, query[headerSize:end]...)
	for _, a := range addrs {
		for _, n := range []uint16{questionName, typeA, classIN, 0, 0, 4} { // the time to live is 0
			b = binary.BigEndian.AppendUint16(b, n)
		}
		b = append(b, a.AsSlice()...)
	}
	return b
}
