// SPDX-License-Identifier: Apache-2.0

// Package resident executes requests inside the kernel: its XDP program finds the session
// of a frame, decides whether it is a duplicate, early or next, applies its operations to
// memory in BPF maps, keeps the answer, and turns the packet into it. No process takes
// part, and none is needed.
//
//	packet ─ sound? ─ session ─ order ─ execute ─ cache ─► answer (XDP_TX)
//	            │         │        │        │
//	            └─────────┴────────┴────────┴──► user space: anything unusual
//
// The program, executor.c, decides nothing in a way of its own: it is session.Target and
// internal/memory for the frames that it can do, which are requests of atomic operations
// on integers of 8 to 64 bits. Every other frame goes to user space as it came. A test
// feeds the same frames to both and compares all that can be seen.
//
// The state is in maps: sessions, their answers, regions, and one map for the memory of
// each region. Only the program writes the state of a session, under a lock in its entry.
// User space has it do so by a call, BPF_PROG_TEST_RUN of the same code: a process that
// is killed cannot stop within a call, so at every instant a frame has run, and that is
// noted and its answer kept, or it has not run.
//
// Needs Linux 5.18 and the capabilities of package bpf.
package resident

// The object depends on nothing but this folder, that of package bpf and clang 14.
//
//go:generate go tool -modfile=../../tools/go.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -tags linux -type session -type region -type answer -type touched executor executor.c -- -mcpu=v3 -nostdinc -Wall -Wextra -Wno-unused-parameter -Werror
