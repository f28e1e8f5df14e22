// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// call is a command whose arguments are words, values, which are printed, or lists of
// words. A word with spaces is several.
func call(program string, args ...any) command {
	c := command{program: program}
	for _, a := range args {
		if list, is := a.([]string); is {
			c.args = append(c.args, list...)
		} else {
			c.args = append(c.args, strings.Fields(fmt.Sprint(a))...)
		}
	}
	return c
}

// warmUp is before each sample. It is short, as samples are, so that most of a run is
// measured.
const warmUp = 50 * time.Millisecond

// floorRun has the arguments of the floor's client.
type floorRun struct {
	window, size, counters, reply int
	footprint                     bool // xdpfab's, on both sides
	seconds                       time.Duration
}

// floor is our C echo and client, without any protocol.
func floor(name string, r floorRun) *contest {
	kind := map[bool]string{false: "bare", true: "footprint"}[r.footprint]
	return &contest{
		name:   name,
		server: func(*network) command { return call("floor", "echo", veth.IfName, kind) },
		client: func(n *network, _ string) command {
			return call("floor", "client", veth.IfName, kind, n.B.MAC, r.window, r.size, r.counters, r.reply,
				r.seconds.Seconds(), warmUp.Seconds())
		},
	}
}

// floorStream is frames one way in C, with as much payload each as given. With copies the
// payload comes from memory of the source's and goes to memory of the sink's.
func floorStream(name string, payload uint64, copies bool, t time.Duration) *contest {
	way := map[bool]string{false: "pass", true: "copy"}[copies]
	return &contest{
		name:    name,
		payload: payload,
		server:  func(*network) command { return call("stream", "sink", veth.IfName, way) },
		client: func(n *network, _ string) command {
			return call("stream", "source", veth.IfName, n.B.MAC, payload, way, t.Seconds(), warmUp.Seconds())
		},
	}
}

// Ports of servers; no others are in the namespace.
const (
	ucxPort    = 13337
	fabricPort = 9000
)

// ucx is ucx_perftest over TCP.
func ucx(name, test string, outstanding, iterations int) *contest {
	return &contest{
		name:   name,
		serves: func(_ *network, server *process) bool { return listening(server.cmd.Process.Pid, ucxPort) },
		parse:  parseUCX,
		server: func(n *network) command { return byUCX(n.B, call("ucx_perftest", "-p", ucxPort)) },
		client: func(n *network, _ string) command {
			c := call("ucx_perftest", n.B.IP4, "-p", ucxPort, "-t", test, "-s", 8, "-n", iterations, "-w", ucxWarmUp)
			if outstanding > 1 {
				c.args = append(c.args, "-O", fmt.Sprint(outstanding))
			}
			return byUCX(n.A, c)
		},
	}
}

// byUCX makes UCX use TCP over the veth pair. The command sees the namespace in /sys,
// too, where UCX looks for interfaces: ip mounts /sys anew, and then becomes the command.
func byUCX(side *veth.Side, c command) command {
	inside := call("ip", "netns", "exec", side.Name, c.program, c.args)
	inside.env = []string{"UCX_TLS=tcp", "UCX_NET_DEVICES=" + veth.IfName}
	return inside
}

// libfabric is our client and server on libfabric's public API. ready is the address
// and the key of the server's memory.
func libfabric(name, provider, op string, window int, t time.Duration) *contest {
	return &contest{
		name:   name,
		peer:   true,
		slow:   true,
		server: func(n *network) command { return call("fabric", "server", provider, n.B.IP4, fabricPort) },
		client: func(n *network, ready string) command {
			return call("fabric", "client", provider, n.B.IP4, fabricPort, ready, op, window, t.Seconds(),
				warmUp.Seconds())
		},
	}
}

// transfer is a test of messages or of remote memory access, by the loops of
// c/transfer.h.
type transfer struct {
	test    string // trip, stream, write or read
	size    int    // bytes of a message, a write or a read
	flight  int    // messages without a credit; writes or reads of a batch
	seconds time.Duration
}

// server and client are the arguments that all peers take.
func (t transfer) server() string { return fmt.Sprintf("server %s %d", t.test, t.size) }
func (t transfer) client() string {
	return fmt.Sprintf("client %s %d %d %v %v", t.test, t.size, t.flight, t.seconds.Seconds(), warmUp.Seconds())
}

// ucxTransfer is our client and server on UCX's ucp API, over TCP. ready is the server's
// address, where its memory begins, and the key.
func ucxTransfer(name string, t transfer) *contest {
	program := func(n *network) string { return filepath.Join(n.dir, "ucx_transfer") }
	return &contest{
		name:    name,
		peer:    true,
		payload: uint64(t.size),
		server:  func(n *network) command { return byUCX(n.B, call(program(n), t.server())) },
		client: func(n *network, ready string) command {
			return byUCX(n.A, call(program(n), t.client(), ready))
		},
	}
}

// libfabricTransfer is our client and server on libfabric's tcp;ofi_rxm.
func libfabricTransfer(name string, t transfer) *contest {
	over := func(n *network, args ...any) command {
		return call("fabric_transfer", append(args, "tcp;ofi_rxm", n.B.IP4, fabricPort)...)
	}
	return &contest{
		name:    name,
		peer:    true,
		slow:    true,
		payload: uint64(t.size),
		server:  func(n *network) command { return over(n, t.server()) },
		client: func(n *network, ready string) command {
			c := over(n, t.client())
			c.args = append(c.args, strings.Fields(ready)...)
			return c
		},
	}
}

// fabTransfer is xdpfab, by its public API, in the way that costs least.
func fabTransfer(name string, t transfer) *contest {
	side := func(part string, peer *veth.Side) command {
		return call("worker", part, "-i", veth.IfName, "-peer", peer.MAC, "-threading", "domain", "-test", t.test,
			"-size", t.size, "-flight", t.flight)
	}
	return &contest{
		name:    name,
		payload: uint64(t.size),
		server:  func(n *network) command { return side("server", n.A) },
		client: func(n *network, _ string) command {
			c := side("client", n.B)
			c.args = append(c.args, "-duration", t.seconds.String(), "-warmup", warmUp.String())
			return c
		},
	}
}

// plain is a counter behind Go's net package, with one request in flight on each
// connection.
func plain(name, protocol string, connections int, t time.Duration) *contest {
	return &contest{
		name:   name,
		peer:   true,
		server: func(n *network) command { return call("plain", "server", protocol, n.B.IP4) },
		client: func(_ *network, ready string) command {
			return call("plain", "client", protocol, ready, connections, t, warmUp)
		},
	}
}

// fabRun has the flags of xdpfab's worker; the zero value of a field leaves the choice
// to the worker.
type fabRun struct {
	op                                 string // base, fetch or compare
	window, endpoints, words, elements int
	scatter                            int    // words of a post
	progress, threading                string // of the initiator
	targetProgress, targetThreading    string
	udp                                bool
	sockets                            bool // UDP sockets in place of AF_XDP
	rate                               float64
	regions                            int // of the target, which the initiator addresses in turn
	idle                               int // of the target, of which the initiator uses one
	unordered                          bool
	seconds                            time.Duration

	daemon   bool // xdpfabd is the target
	attached bool // the initiator is attached to a host
	resident bool // the XDP program executes; it may fail, since an old kernel cannot have that
	hogged   bool // another process keeps the target's core busy
}

// fab is xdpfab, by its public API.
func fab(name string, r fabRun) *contest {
	c := &contest{name: name, server: r.target, client: r.initiator, hogged: r.hogged, peer: r.resident,
		hosted: r.attached, shared: r.progress == "auto", words: r.scatter, payload: uint64(r.elements) * 8,
		slow: max(r.regions, r.idle, r.endpoints) >= sessions || r.rate == seldom}
	if r.daemon {
		c.serves = func(n *network, _ *process) bool { return answers(n.socket()) }
	}
	return c
}

// target is the command of the server.
func (r fabRun) target(n *network) command {
	switch {
	case r.daemon:
		return daemonCommand(n)
	case r.attached:
		return hostCommand(n)
	}
	return call("worker", "target", "-i", veth.IfName, flags("progress", r.targetProgress,
		"threading", r.targetThreading, "regions", max(r.regions, r.idle), "transport", r.transport(),
		"resident", r.resident))
}

// initiator is the command of the client.
func (r fabRun) initiator(n *network, _ string) command {
	peer, host := n.B.MAC.String(), []string(nil)
	if r.udp || r.sockets {
		peer = n.B.IP4.String()
	}
	if r.attached {
		host = flags("control", n.socket(), "region", "bench0")
	}
	return call("worker", "initiator", "-i", veth.IfName, "-peer", peer, r.load(), flags("endpoints", r.endpoints,
		"elements", r.elements, "scatter", r.scatter, "progress", r.progress, "threading", r.threading,
		"regions", r.regions, "transport", r.transport()), host)
}

// load are the flags of all that post.
func (r fabRun) load() []string {
	return flags("op", r.op, "window", r.window, "words", r.words, "rate", r.rate, "unordered", r.unordered,
		"duration", r.seconds, "warmup", warmUp)
}

// transport is a worker's flag.
func (r fabRun) transport() string { return map[bool]string{true: "udp"}[r.sockets] }

// lossy is xdpfab with packets that get lost, in one process.
func lossy(name string, r fabRun) *contest {
	return &contest{name: name, client: func(*network, string) command { return call("worker", "lossy", r.load()) }}
}

// flags are those of pairs of a name and a value whose values are not zero.
func flags(pairs ...any) (args []string) {
	for i := 0; i < len(pairs); i += 2 {
		if !reflect.ValueOf(pairs[i+1]).IsZero() {
			args = append(args, fmt.Sprintf("-%v=%v", pairs[i], pairs[i+1]))
		}
	}
	return args
}
