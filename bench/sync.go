// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// Groups of the plan of locks and counters.
const (
	locks     = "Locks got and released, one client"
	handovers = "A lock that 16 clients want, on its way from one to the next"
	adds      = "Increments of one number, one client"
	puts      = "Puts without and with a signal, one at a time"
	answered  = "A request of 64 bytes and its reply, one at a time, by a function and by messages"
)

const (
	syncTime    = 400 * time.Millisecond
	syncClients = 16
	requestSize = 64 // bytes of a request, and of its reply
	etcdPort    = 2379
	redisPort   = 6379
	natsPort    = 4222
)

// syncPlan has the contests of package xdpfab/sync and of the servers that are used for
// the same. xdpfab's home is the daemon.
func syncPlan() []entry {
	p := []entry{
		{"sync_locks", locks, partsOf("xdpfab sync.Mutex", "locks")},
		{"sync_locks_manual", locks, partsOf("xdpfab sync.Mutex, manual", "locks", "-progress", "manual")},
		{"sync_locks_start", locks, partsOf("xdpfab sync.Mutex, StartUnlock", "locks", "-start-unlock")},
		{"redis_locks", locks, redisParts("Redis SET NX PX, EVAL", "locks")},
		{"nats_locks", locks, natsParts("NATS key-value store, in memory", "locks")},
		{"etcd_locks", locks, etcdParts("etcd concurrency.Mutex", "locks")},
		{"sync_handover", handovers, partsOf("xdpfab sync.Mutex", "handover", "-clients", syncClients)},
		{"sync_handover_start", handovers, partsOf("xdpfab sync.Mutex, StartUnlock", "handover", "-start-unlock",
			"-clients", syncClients)},
		{"etcd_handover", handovers, etcdParts("etcd concurrency.Mutex", "handover", "-clients", syncClients)},
	}
	for _, depth := range []int{1, 16, 128} {
		in, id := fmt.Sprintf("%d in flight", depth), fmt.Sprint(depth)
		p = append(p,
			entry{"sync_adds" + id, adds, partsOf("xdpfab Remote.Add, "+in, "adds", "-depth", depth)},
			entry{"sync_manual" + id, adds, partsOf("xdpfab Remote.Add, manual, "+in, "adds", "-progress", "manual",
				"-depth", depth)})
		if depth > 1 {
			p = append(p, entry{"sync_vector" + id, adds, partsOf("xdpfab RemoteVector.Add, manual, "+id+" a call",
				"vector", "-progress", "manual", "-depth", depth)})
		}
		p = append(p, entry{"redis_adds" + id, adds, redisParts("Redis INCR, "+in, "adds", "-depth", depth)})
	}
	for _, size := range []int{8, 4096} {
		of := fmt.Sprintf(" of %d bytes, manual", size)
		flags := []any{"-progress", "manual", "-size", size}
		p = append(p,
			entry{fmt.Sprint("put", size), puts, partsOf("xdpfab put"+of, "put", flags...)},
			entry{fmt.Sprint("put_signal", size), puts, partsOf("xdpfab put with signal"+of, "put-signal", flags...)})
	}
	for _, progress := range []string{"manual", "auto"} {
		id := map[bool]string{true: "_auto"}[progress == "auto"]
		flags := []any{"-progress", progress, "-size", requestSize}
		p = append(p,
			entry{"served_add" + id, answered, callsOf("xdpfab Remote.Add, "+progress, "adds", "serve-calls", flags)},
			entry{"call" + id, answered, callsOf("xdpfab Peer.Call, "+progress, "call", "serve-calls", flags)},
			entry{"message" + id, answered, callsOf("xdpfab Send and Receive, there and back, "+progress, "message",
				"serve-messages", flags)})
	}
	return p
}

// callsOf is a contest with a program that answers requests, by a function or by
// messages.
func callsOf(name, test, serves string, flags []any) *contest {
	return &contest{
		name:   name,
		shared: !slices.Contains(flags, any("manual")),
		server: func(*network) command {
			return call("parts", "xdpfab", serves, "-i", veth.IfName, "-size", requestSize)
		},
		client: func(n *network, ready string) command { return partsCall("xdpfab", test, ready, flags) },
	}
}

// partsCall is the client of a contest.
func partsCall(system, test, peer string, flags []any) command {
	return call("parts", append([]any{system, test, "-i", veth.IfName, "-peer", peer, "-duration", syncTime,
		"-warmup", warmUp}, flags...)...)
}

func partsOf(name, test string, flags ...any) *contest {
	return &contest{
		name:   name,
		shared: !slices.Contains(flags, any("manual")),
		serves: func(n *network, _ *process) bool { return answers(n.socket()) },
		server: daemonCommand,
		client: func(n *network, _ string) command { return partsCall("xdpfab", test, n.B.MAC.String(), flags) },
	}
}

// served is a contest of another project's server, which listens on a port, and has a
// directory that is empty at first.
func served(name, system, test string, port uint16, flags []any,
	server func(n *network, dir string) command) *contest {
	at := func(n *network) string { return netip.AddrPortFrom(n.B.IP4, port).String() }
	return &contest{
		name:   name,
		peer:   true,
		serves: func(_ *network, server *process) bool { return listening(server.cmd.Process.Pid, int(port)) },
		server: func(n *network) command {
			dir := filepath.Join(n.tmp, system)
			_ = os.RemoveAll(dir) // or the server says what it does not like
			_ = os.MkdirAll(dir, 0o700)
			c := server(n, dir)
			c.env = append(c.env, "LD_LIBRARY_PATH="+filepath.Join(n.dir, "lib"))
			return c
		},
		client: func(n *network, _ string) command { return partsCall(system, test, at(n), flags) },
	}
}

// etcdParts has an etcd of one member, which writes to a file system in memory if there
// is one: so it need not wait for a disk.
func etcdParts(name, test string, flags ...any) *contest {
	return served(name, "etcd", test, etcdPort, flags, func(n *network, dir string) command {
		at := func(port int) string { return fmt.Sprintf("http://%v:%d", n.B.IP4, port) }
		clients, peers := at(etcdPort), at(etcdPort+1)
		return call("etcd", "--data-dir", dir, "--listen-client-urls", clients, "--advertise-client-urls", clients,
			"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster",
			"default="+peers, "--logger", "zap", "--log-level", "error")
	})
}

// redisParts has a Redis that writes nothing to a disk.
func redisParts(name, test string, flags ...any) *contest {
	return served(name, "redis", test, redisPort, flags, func(n *network, dir string) command {
		return call("redis-server", "--bind", n.B.IP4, "--port", redisPort, "--dir", dir, "--protected-mode", "no",
			"--appendonly", "no", []string{"--save", ""})
	})
}

func natsParts(name, test string, flags ...any) *contest {
	return served(name, "nats", test, natsPort, flags, func(n *network, dir string) command {
		return call("nats-server", "-a", n.B.IP4, "-p", natsPort, "-js", "-sd", dir)
	})
}

// syncAims are those of package xdpfab/sync.
func syncAims(m *results) []aim {
	aims := []aim{
		m.atLeast("locks a second, to etcd's", rate, "sync_locks", "etcd_locks", 50).
			because("two round trips and one, of some microseconds, where etcd has a log"),
		m.atLeast("the same by StartUnlock", rate, "sync_locks_start", "etcd_locks", 50).
			because("the next request shares a packet with the release"),
		m.atMost("a lock handed over among 16, p50, to a round trip", p50, "sync_handover", "sync_adds1", 1.5).
			because("the release is a round trip, and the next one may hear of it in half of one"),
		m.atMost("the same by StartUnlock", p50, "sync_handover_start", "sync_adds1", 1.5).
			because("the client's core has less to do for each release"),
		m.atMost("handed over by Unlock, to etcd's", p50, "sync_handover", "etcd_handover", 0.1).
			because("etcd tells the next one by a watch, after a log has the release"),
	}
	for _, depth := range []string{"1", "16", "128"} {
		aims = append(aims, m.atLeast("increments a second, "+depth+" in flight, to Redis's", rate, "sync_manual"+depth,
			"redis_adds"+depth, 10).because("neither the kernel's TCP nor a parser is on the way"))
		if depth != "1" {
			aims = append(aims, m.atLeast("the same by RemoteVector.Add", rate, "sync_vector"+depth,
				"redis_adds"+depth, 10).because("they share a frame and a completion"))
		}
	}
	for _, size := range []string{"8", "4096"} {
		aims = append(aims, m.atMost("put with signal of "+size+" bytes, p50, to a put", p50, "put_signal"+size,
			"put"+size, 1.1).because("it is one operation, and one record more"))
	}
	aims = append(aims, m.atMost("a call, p50, to a message there and one back", p50, "call", "message", 1).
		because("the reply is in the answer to the request"))
	return checked(aims)
}

// parts measures package xdpfab/sync beside etcd, Redis and NATS.
func parts(ctx context.Context, n *network, out io.Writer, rounds int) error {
	before, _ := os.ReadFile("/proc/loadavg")
	r, err := n.rounds(ctx, syncPlan(), budget{rounds: rounds})
	if err != nil {
		return err
	}
	after, _ := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(out, "Load of the machine before: %s; after: %s\n", strings.TrimSpace(string(before)),
		strings.TrimSpace(string(after)))
	r.print(out)
	printAims(out, syncAims(r))
	return nil
}
