// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

const (
	// fullWindow is how many operations fill every frame of a session's window.
	fullWindow = 4096
	// spreadWords is how many words operations go to in turn; together 32 KiB.
	spreadWords = 4096
)

// floorRun is what the floor's client is asked for.
type floorRun struct {
	window, size, counters, reply int
	seconds                       time.Duration
}

// floor is our C echo and client, without any protocol.
func floor(name string, r floorRun) *contest {
	return &contest{
		name:   name,
		server: func(*network) command { return command{program: "floor", args: []string{"echo", veth.IfName}} },
		client: func(n *network) command {
			return command{program: "floor", args: []string{"client", veth.IfName, n.B.MAC.String(),
				strconv.Itoa(r.window), strconv.Itoa(r.size), strconv.Itoa(r.counters), strconv.Itoa(r.reply),
				fmt.Sprint(r.seconds.Seconds()), "0.1"}}
		},
	}
}

// ucxPort is any: the namespace is ours.
const ucxPort = 13337

// ucx is ucx_perftest over TCP.
func ucx(name, test string, outstanding, iterations int) *contest {
	env := []string{"UCX_TLS=tcp", "UCX_NET_DEVICES=" + veth.IfName}
	port := strconv.Itoa(ucxPort)
	return &contest{
		name:    name,
		listens: ucxPort,
		parse:   parseUCX,
		server:  func(n *network) command { return inside(n.B, "ucx_perftest", []string{"-p", port}, env) },
		client: func(n *network) command {
			args := []string{n.B.IP4.String(), "-p", port, "-t", test, "-s", "8", "-n", strconv.Itoa(iterations)}
			if outstanding > 1 {
				args = append(args, "-O", strconv.Itoa(outstanding))
			}
			return inside(n.A, "ucx_perftest", args, env)
		},
	}
}

// inside is a command that also has to see the namespace in /sys, where UCX looks
// for interfaces: ip mounts it, and then becomes the command.
func inside(side *veth.Side, program string, args, env []string) command {
	return command{program: "ip", args: append([]string{"netns", "exec", side.Name, program}, args...), env: env}
}

// fabRun is what xdpfab's worker is asked for; the zero value of a field is the
// worker's own choice.
type fabRun struct {
	op                                 string
	window, endpoints, words, elements int
	progress                           string // of the initiator
	targetProgress                     string
	udp                                bool
	rate                               float64
	size                               int // of the region, in bytes
	regions                            int
	seconds                            time.Duration
}

// fab is xdpfab, by its public API.
func fab(name string, r fabRun) *contest {
	return &contest{
		name: name,
		server: func(*network) command {
			args := []string{"target", "-i", veth.IfName}
			add(&args, "-progress", r.targetProgress)
			add(&args, "-size", r.size)
			add(&args, "-regions", r.regions)
			if r.udp {
				args = append(args, "-udp")
			}
			return command{program: "worker", args: args}
		},
		client: func(n *network) command {
			peer := n.B.MAC.String()
			if r.udp {
				peer = n.B.IP4.String()
			}
			args := []string{"initiator", "-i", veth.IfName, "-peer", peer}
			if r.udp {
				args = append(args, "-udp")
			}
			add(&args, "-op", r.op)
			add(&args, "-window", r.window)
			add(&args, "-endpoints", r.endpoints)
			add(&args, "-words", r.words)
			add(&args, "-elements", r.elements)
			add(&args, "-progress", r.progress)
			add(&args, "-rate", r.rate)
			add(&args, "-duration", r.seconds)
			return command{program: "worker", args: args}
		},
	}
}

// add adds a flag unless its value is zero.
func add[T comparable](args *[]string, name string, value T) {
	var zero T
	if value != zero {
		*args = append(*args, name, fmt.Sprint(value))
	}
}
