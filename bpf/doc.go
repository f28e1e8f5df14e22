// SPDX-License-Identifier: Apache-2.0

// Package bpf is where an operation enters a node: the XDP program that sees each
// received packet first. It finds the xdpfab frames among them, drops malformed ones, and
// redirects the rest to the AF_XDP socket (package xsk) that owns the frame's session;
// all other traffic passes to the kernel untouched.
//
//	packet ─ find frame ─ check frame ─ lane ─► sockets[queue*64+lane] ─► xsk
//	             │             │          │
//	             ▼ pass        ▼ drop     ▼ drop: no socket
//	           kernel       counters[reason]
//
// The program is steer.c; its object is committed, so users need no clang. It
// counts every packet under exactly one [Reason]. It does not look at the CRC,
// nor past the sixth byte of a frame: that is the codec's part.
//
// A program that executes requests can stand before the sockets (Program.SetExecutor):
// frames of sessions are given to it as a tail call, and it does with those that are not
// its own what this program would. See internal/resident.
//
// A [Program] is loaded with a [Config], attached to one interface by a bpf_link
// and given sockets. The link lives as long as the process: however that ends,
// the kernel detaches the program and the interface is as before.
//
// Needs Linux 5.9 (bpf_link for XDP), from 5.11 on without RLIMIT_MEMLOCK, and the
// capabilities CAP_BPF, CAP_PERFMON (the verifier requires it for arithmetic with
// packet pointers) and CAP_NET_ADMIN.
package bpf

// The object depends on nothing but this folder and clang 14: no system header
// is read, and bpf2go maps paths away and strips DWARF.
//
//go:generate go tool -modfile=../tools/go.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -tags linux steer steer.c -- -mcpu=v2 -nostdinc -Wall -Wextra -Werror
