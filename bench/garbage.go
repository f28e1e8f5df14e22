// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"time"
)

// What the garbage of a Go program does to round trips. The collector's workers run on
// the processors of the process that has the garbage, also on the one of a thread that
// polls.

const besideGarbage = "Round trips of a fetch-add beside 1 GB/s of garbage in one of the processes"

const garbageRate = 1_000_000_000 // bytes a second

// garbageRun is a fetch-add at a time, with garbage in the process of one side.
type garbageRun struct {
	fabRun
	initiator, target bool   // makes garbage
	gogc              string // of that process; empty: Go's default
	wide              bool   // the initiator has both cores, as it can where the target takes none
}

func (r garbageRun) contest(name string) *contest {
	c := fab(name, r.fabRun)
	if r.resident {
		c = inXDP(name, r.fabRun)
	}
	c.slow = true // its samples are long
	server, client := c.server, c.client
	c.server = func(n *network) command { return r.beside(server(n), r.target) }
	c.client = func(n *network, ready string) command {
		cmd := r.beside(client(n, ready), r.initiator)
		if r.wide {
			cmd.args = append([]string{"-c", fmt.Sprintf("%d,%d", n.clientCore, n.serverCore),
				filepath.Join(n.dir, cmd.program)}, cmd.args...)
			cmd.program = "taskset"
		}
		return cmd
	}
	return c
}

// beside is a command with or without garbage in its process.
func (r garbageRun) beside(c command, garbage bool) command {
	if garbage {
		c.args = append(c.args, flags("garbage", garbageRate)...)
		if r.gogc != "" {
			c.env = append(c.env, "GOGC="+r.gogc)
		}
	}
	return c
}

// garbagePlan has the contests. Rows of a wide initiator have a resident region as
// target, so that two cores are enough.
func garbagePlan(t time.Duration) []entry {
	t *= 4 // collections are rare
	wide := garbageRun{fabRun: fabRun{threading: "domain", seconds: t, resident: true}, wide: true}
	one := garbageRun{fabRun: fabRun{threading: "domain", seconds: t}}
	attached := garbageRun{fabRun: fabRun{threading: "domain", seconds: t, attached: true}}
	in := func(r garbageRun, gogc string) garbageRun { r.initiator, r.gogc = true, gogc; return r }
	at := func(r garbageRun) garbageRun { r.target = true; return r }
	list := []struct {
		id, name string
		garbageRun
	}{
		{"garbage_none", "no garbage, initiator on two cores", wide},
		{"garbage", "in the initiator, on two cores", in(wide, "")},
		{"garbage_gogc", "the same, GOGC=400", in(wide, "400")},
		{"garbage_core", "in the initiator, on one core", in(one, "")},
		{"garbage_core_gogc", "the same, GOGC=400", in(one, "400")},
		{"garbage_attached", "in the initiator, on one core, attached", in(attached, "")},
		{"garbage_attached_gogc", "the same, GOGC=400", in(attached, "400")},
		{"garbage_target", "in the target", at(one)},
		{"garbage_resident", "in the target, resident region",
			at(garbageRun{fabRun: fabRun{threading: "domain", seconds: t, resident: true}})},
	}
	var p []entry
	for _, x := range list {
		p = append(p, entry{x.id, besideGarbage, x.contest(x.name)})
	}
	return p
}

// garbageAims are the aims beside garbage.
func garbageAims(m *results) []aim {
	return []aim{
		atMost("fetch-add beside 1 GB/s of garbage of an attached program: p99.9",
			m.median("garbage_attached", p999)/1e3, "µs", 100).of(m, "garbage_attached").
			because("the daemon sends and receives, and has no garbage"),
		atMost("the same, garbage of the target, resident region",
			m.median("garbage_resident", p999)/1e3, "µs", 100).of(m, "garbage_resident").
			because("the XDP program executes, without a thread of the target"),
	}
}
