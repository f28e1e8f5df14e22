// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// floorRun has the arguments of the floor's client.
type floorRun struct {
	window, size, counters, reply int
	seconds                       time.Duration
}

// floor is our C echo and client, without any protocol.
func floor(name string, r floorRun) *contest {
	return &contest{
		name:   name,
		server: func(*network) command { return command{program: "floor", args: []string{"echo", veth.IfName}} },
		client: func(n *network, _ string) command {
			return command{program: "floor", args: []string{"client", veth.IfName, n.B.MAC.String(),
				strconv.Itoa(r.window), strconv.Itoa(r.size), strconv.Itoa(r.counters), strconv.Itoa(r.reply),
				fmt.Sprint(r.seconds.Seconds()), "0.1"}}
		},
	}
}

// floorStream is frames one way in C, with as much payload each as given. With copies the
// payload comes from memory of the source's and goes to memory of the sink's.
func floorStream(name string, payload uint64, copies bool, t time.Duration) *contest {
	way := "pass"
	if copies {
		way = "copy"
	}
	return &contest{
		name:    name,
		payload: payload,
		server:  func(*network) command { return command{program: "stream", args: []string{"sink", veth.IfName, way}} },
		client: func(n *network, _ string) command {
			return command{program: "stream", args: []string{"source", veth.IfName, n.B.MAC.String(),
				fmt.Sprint(payload), way, fmt.Sprint(t.Seconds()), "0.1"}}
		},
	}
}

// ucxPort may be any port: no other server is in the namespace.
const ucxPort = 13337

// ucxEnv makes UCX use TCP over the veth pair.
var ucxEnv = []string{"UCX_TLS=tcp", "UCX_NET_DEVICES=" + veth.IfName}

// ucx is ucx_perftest over TCP.
func ucx(name, test string, outstanding, iterations int) *contest {
	port := strconv.Itoa(ucxPort)
	return &contest{
		name:   name,
		serves: func(_ *network, server *process) bool { return listening(server.cmd.Process.Pid, ucxPort) },
		parse:  parseUCX,
		server: func(n *network) command { return inside(n.B, "ucx_perftest", []string{"-p", port}, ucxEnv) },
		client: func(n *network, _ string) command {
			args := []string{n.B.IP4.String(), "-p", port, "-t", test, "-s", "8", "-n", strconv.Itoa(iterations)}
			if outstanding > 1 {
				args = append(args, "-O", strconv.Itoa(outstanding))
			}
			return inside(n.A, "ucx_perftest", args, ucxEnv)
		},
	}
}

// inside returns a command that also sees the namespace in /sys, where UCX looks for
// interfaces: ip mounts /sys anew, and then becomes the command.
func inside(side *veth.Side, program string, args, env []string) command {
	return command{program: "ip", args: append([]string{"netns", "exec", side.Name, program}, args...), env: env}
}

// libfabric is our client and server on libfabric's public API. ready is the address
// and the key of the server's memory.
func libfabric(name, provider, op string, window int, t time.Duration) *contest {
	const port = "9000" // may be any, as ucxPort
	return &contest{
		name: name,
		peer: true,
		server: func(n *network) command {
			return command{program: "fabric", args: []string{"server", provider, n.B.IP4.String(), port}}
		},
		client: func(n *network, ready string) command {
			args := append([]string{"client", provider, n.B.IP4.String(), port}, strings.Fields(ready)...)
			return command{program: "fabric",
				args: append(args, op, strconv.Itoa(window), fmt.Sprint(t.Seconds()), "0.1")}
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
func (t transfer) server() []string { return []string{"server", t.test, strconv.Itoa(t.size)} }
func (t transfer) client() []string {
	return []string{"client", t.test, strconv.Itoa(t.size), strconv.Itoa(t.flight),
		fmt.Sprint(t.seconds.Seconds()), "0.1"}
}

// ucxTransfer is our client and server on UCX's ucp API, over TCP. ready is the server's
// address, where its memory begins, and the key.
func ucxTransfer(name string, t transfer) *contest {
	return &contest{
		name:    name,
		peer:    true,
		payload: uint64(t.size),
		server: func(n *network) command {
			return inside(n.B, filepath.Join(n.dir, "ucx_transfer"), t.server(), ucxEnv)
		},
		client: func(n *network, ready string) command {
			return inside(n.A, filepath.Join(n.dir, "ucx_transfer"),
				append(t.client(), strings.Fields(ready)...), ucxEnv)
		},
	}
}

// libfabricTransfer is our client and server on libfabric's tcp;ofi_rxm.
func libfabricTransfer(name string, t transfer) *contest {
	const port = "9000" // may be any, as ucxPort
	where := func(n *network) []string { return []string{"tcp;ofi_rxm", n.B.IP4.String(), port} }
	return &contest{
		name:    name,
		peer:    true,
		payload: uint64(t.size),
		server: func(n *network) command {
			return command{program: "fabric_transfer", args: append(t.server(), where(n)...)}
		},
		client: func(n *network, ready string) command {
			args := append(t.client(), where(n)...)
			return command{program: "fabric_transfer", args: append(args, strings.Fields(ready)...)}
		},
	}
}

// fabTransfer is xdpfab, by its public API, in the way that costs least.
func fabTransfer(name string, t transfer) *contest {
	side := func(part string, peer *veth.Side) command {
		args := []string{part, "-i", veth.IfName, "-peer", peer.MAC.String(), "-threading", "domain",
			"-test", t.test, "-size", strconv.Itoa(t.size), "-flight", strconv.Itoa(t.flight)}
		if part == "client" {
			args = append(args, "-duration", t.seconds.String(), "-warmup", "100ms")
		}
		return command{program: "worker", args: args}
	}
	return &contest{
		name:    name,
		payload: uint64(t.size),
		server:  func(n *network) command { return side("server", n.A) },
		client:  func(n *network, _ string) command { return side("client", n.B) },
	}
}

// plain is a counter behind Go's net package, with one request in flight on each
// connection.
func plain(name, protocol string, connections int, t time.Duration) *contest {
	return &contest{
		name: name,
		peer: true,
		server: func(n *network) command {
			return command{program: "plain", args: []string{"server", protocol, n.B.IP4.String()}}
		},
		client: func(_ *network, ready string) command {
			return command{program: "plain",
				args: []string{"client", protocol, ready, strconv.Itoa(connections), t.String(), "100ms"}}
		},
	}
}

// fabRun has the flags of xdpfab's worker; the zero value of a field leaves the choice
// to the worker.
type fabRun struct {
	op                                 string
	window, endpoints, words, elements int
	scatter                            int    // words of a post
	progress                           string // of the initiator
	threading                          string // of the initiator
	targetProgress, targetThreading    string
	udp                                bool
	sockets                            bool // UDP sockets in place of AF_XDP
	rate                               float64
	size                               int // of the region, in bytes
	regions                            int
	unordered                          bool
	seconds                            time.Duration
}

// fab is xdpfab, by its public API.
func fab(name string, r fabRun) *contest {
	return &contest{
		name: name,
		server: func(*network) command {
			args := []string{"target", "-i", veth.IfName}
			add(&args, "-progress", r.targetProgress)
			add(&args, "-threading", r.targetThreading)
			add(&args, "-size", r.size)
			add(&args, "-regions", r.regions)
			add(&args, "-udp", r.udp)
			add(&args, "-transport", r.transport())
			return command{program: "worker", args: args}
		},
		client: func(n *network, _ string) command {
			peer := n.B.MAC.String()
			if r.udp || r.sockets {
				peer = n.B.IP4.String()
			}
			args := []string{"initiator", "-i", veth.IfName, "-peer", peer}
			add(&args, "-op", r.op)
			add(&args, "-window", r.window)
			add(&args, "-endpoints", r.endpoints)
			add(&args, "-words", r.words)
			add(&args, "-elements", r.elements)
			add(&args, "-scatter", r.scatter)
			add(&args, "-progress", r.progress)
			add(&args, "-threading", r.threading)
			add(&args, "-rate", r.rate)
			add(&args, "-regions", r.regions)
			add(&args, "-udp", r.udp)
			add(&args, "-transport", r.transport())
			add(&args, "-duration", r.seconds)
			return command{program: "worker", args: args}
		},
	}
}

// transport is a worker's flag.
func (r *fabRun) transport() string {
	if r.sockets {
		return "udp"
	}
	return ""
}

// lossy is xdpfab with packets that get lost, in one process.
func lossy(name string, r fabRun) *contest {
	return &contest{
		name: name,
		client: func(*network, string) command {
			args := []string{"lossy"}
			add(&args, "-op", r.op)
			add(&args, "-window", r.window)
			add(&args, "-words", r.words)
			add(&args, "-rate", r.rate)
			add(&args, "-unordered", r.unordered)
			add(&args, "-duration", r.seconds)
			return command{program: "worker", args: args}
		},
	}
}

// withRegions changes a contest of xdpfab's so that the target has more regions than
// the initiator uses.
func withRegions(c *contest, regions int) *contest {
	plain := c.server
	c.server = func(n *network) command {
		cmd := plain(n)
		cmd.args = append(cmd.args, "-regions", strconv.Itoa(regions))
		return cmd
	}
	return c
}

// add adds a flag unless its value is zero.
func add[T comparable](args *[]string, name string, value T) {
	var zero T
	if value != zero {
		*args = append(*args, name+"="+fmt.Sprint(value))
	}
}
