// SPDX-License-Identifier: Apache-2.0

// Package vm runs the project's tests inside virtual machines, each with a chosen
// kernel. It needs no root, the host's kernel is not touched, and a kernel that
// crashes is a failed test and not a dead machine.
//
//	make test-vm                                  the short set, Debian's stable kernel
//	make test-vm VMTEST=./...                     every test
//	make test-vm KERNEL=6.1 VMTEST='./xsk -run Burst -v'
//	make test-matrix                              every kernel, and a table
//	go run ./test/vm/cmd/vmtest -kernel /boot/vmlinuz-6.8.0 -- ./bpf
//	CGO_ENABLED=0 go test -exec 'vmtest -kernel 6.12 -exec' ./xsk
//
// # One machine
//
// A guest is a kernel and an initramfs: there is no disk, no network, no
// distribution. Process 1 is vminit (package guest), which takes requests over a
// virtio-serial port; the first serial port is the kernel's console. (vimto, which
// runs Go tests in a guest too, needs 9P, overlayfs and virtio-console built into the
// kernel, while Debian's cloud kernels have the latter two as modules and no 9P, and
// it has no network between machines.)
//
//	host                                         guest
//	┌──────────────────────────────┐             ┌───────────────────────────────┐
//	│ vmtest                       │             │ vminit, process 1             │
//	│  go test -c ──▶ initramfs ───┼── QEMU ────▶│  modules, mounts              │
//	│  Machine.Run ────────────────┼─ virtio ───▶│  xsk.test -test.v=test2json   │
//	│  test2json ◀── output, code ─┼─ serial ────┤   └ namespaces, veth, XDP …   │
//	│  Report, Table               │             │  census: what was left behind │
//	│  warnings ◀──────────────────┼─ ttyS0 ─────┤ Linux                         │
//	└──────────────────────────────┘             └───────────────────────────────┘
//
// A package has passed if its test binary said PASS in the end and exited with 0, the
// kernel did not warn (WARNING:, BUG:, Oops) while it ran, and nothing was left behind:
// no process, namespace, link, BPF program, map or link. So a binary that panics, runs
// out of time, is killed, or exits by itself has failed, and so has one that skipped
// all of its tests. The kernel's log comes with each failure.
//
// A guest that does not boot, falls silent, panics or runs out of memory ends the run
// within a bounded time, with an error that says so ([ErrBoot], [ErrHang], [ErrPanic],
// [ErrMemory]); the packages left over are named, and the run has failed
// ([Table.Problems]). One that does not get as far as its first word is booted once more.
// QEMU dies with vmtest.
//
// The short set ([ShortSet]) has what may differ from kernel to kernel; the rest runs on
// the host. Whatever packages are named are tested in full, unless -short or -run says
// otherwise. Several machines with one kernel may share the packages ([RunTests]). Under
// TCG QEMU executes a guest in one thread, so there is a machine for each core of the
// host: of one kernel, up to 4, or of as many kernels as there are cores.
//
// # Kernels and acceleration
//
// A kernel is the path of a bzImage, with its modules in the same folder, or a name (see
// [Suites], [FullKernel]), for which the newest kernel of a Debian release is downloaded
// by apt and unpacked into the user's cache. Nothing is installed, and the host's apt is
// only asked for its mirror.
//
// KVM executes the guest if a guest answers under it; that is tried once and
// remembered ([Cache.Accel]). Otherwise QEMU translates (TCG), which is some ten times
// slower. No test may depend on that.
//
// # Architectures
//
// A guest can have another processor than the host ([Arches]): a kernel of the same
// release, tests that are compiled for it, a QEMU that has such a machine, and the
// programs that tests run, all from Debian's packages, fetched and unpacked once.
//
//	make test-vm ARCH=arm64 VMTEST='./xsk ./bpf -short'
//
// Each instruction is translated, so this takes some ten times as long. Memory appears to
// such a guest in the order of the host's processor: on amd64 only stores that are
// overtaken by later loads can be seen.
//
// # Topologies
//
// Inside the guest, as on a host, package testnet builds the networks:
//
//	pair, multi-queue,   A veth0 ────────────── veth0 B          NewPair
//	jumbo, small MTU
//	VLAN                 A veth0.77 ─ veth0 ══ veth0 ─ veth0.77 B   NewVLAN
//	faulty wire          A veth0 ── faults, delays ── veth0 B    faultwire.New
//	star                 A0 ─┐ ┌─ A2
//	                         bridge                              NewStar
//	                     A1 ─┘ └─ A3
//	routed               A 10.77.0.1 ── router ── 10.78.0.1 B    NewRouted
//
// netem is among the kernels' modules and works on packets that a kernel forwards: in
// the router (Routed.Disturb), where xdpfab's UDP goes through it. It also works
// below a VLAN, whose generic XDP sends through the queueing discipline of the
// interface below. It does not work on frames that an AF_XDP socket sends on its own
// interface, in either XDP mode: they bypass the queueing discipline, so their faults
// come from faultwire.
//
// # NICs
//
// A machine may have two NICs of one kind ([NICs]), joined to each other. Package testnet
// then makes its pairs of these in place of a veth, each in a namespace of its own: tests
// of pairs run on a driver with zero-copy, several queues or receive-side scaling. NICs
// of a host are taken only if testnet.NICsEnv names them, and never those that it uses.
//
//	make test-nic                                 each kind, and a table
//	make test-nic-suites NIC=virtio               the suites of xsk, port, xdpfab and e2e
//	make test-nic-short                           zero-copy on virtio and igb, the least of it
//	make test-nic NIC=virtio VMTEST='./xsk -short'
//	make test-nic NIC=igb VMTEST='./xsk -run Zero -v'
//
// igb needs a newer QEMU than some hosts have ([Cache.Emulator]), and the full kernel.
// igbvf is a virtual function of each of two igbs (SR-IOV), which the guest makes.
// virtio-net has several queues, and offloads, with a tap interface alone, in a network
// namespace that QEMU is started in, which takes root.
//
// # Two machines
//
// A cable ([NewCable]) joins the virtio-net interfaces of two machines: a second
// driver besides veth, two kernels, which may be different ones, and no memory in
// common.
//
//	┌ Linux 6.1 ──────────┐   socket pair    ┌ Linux 7.2 ──────────┐
//	│ xdpfab ── virtio-net├──────────────────┤virtio-net ── xdpfabd│
//	└─────────────────────┘                  └─────────────────────┘
package vm
