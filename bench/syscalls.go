// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// syscallCounter counts the system calls of chosen processes, with a program on
// the kernel's raw_syscalls:sys_enter. It costs each call of the machine some
// tens of nanoseconds, so the runs that count calls do not measure time.
type syscallCounter struct {
	counts  *ebpf.Map // process id -> calls
	program *ebpf.Program
	link    link.Link
}

func newSyscallCounter() (_ *syscallCounter, err error) {
	c := &syscallCounter{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("counting system calls: %w (needs CAP_BPF and CAP_PERFMON)", err), c.close())
		}
	}()
	if c.counts, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 8,
		MaxEntries: 16}); err != nil {
		return nil, err
	}
	spec := &ebpf.ProgramSpec{Type: ebpf.RawTracepoint, License: "Dual BSD/GPL", Instructions: asm.Instructions{
		asm.FnGetCurrentPidTgid.Call(),
		asm.RSh.Imm(asm.R0, 32), // the upper half is the process, the lower the thread
		asm.StoreMem(asm.RFP, -4, asm.R0, asm.Word),
		asm.LoadMapPtr(asm.R1, c.counts.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"), // not one of the chosen
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		asm.Return(),
	}}
	if c.program, err = ebpf.NewProgram(spec); err != nil {
		return nil, err
	}
	c.link, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_enter", Program: c.program})
	return c, err
}

// watch begins to count a process's calls.
func (c *syscallCounter) watch(pid int) error {
	return c.counts.Put(uint32(pid), uint64(0))
}

// count returns how many calls a process has made since watch.
func (c *syscallCounter) count(pid int) (n uint64, err error) {
	err = c.counts.Lookup(uint32(pid), &n)
	return n, err
}

// remove makes room for another process.
func (c *syscallCounter) remove(pid int) { _ = c.counts.Delete(uint32(pid)) }

func (c *syscallCounter) close() error {
	var errs []error
	if c.link != nil {
		errs = append(errs, c.link.Close())
	}
	if c.program != nil {
		errs = append(errs, c.program.Close())
	}
	if c.counts != nil {
		errs = append(errs, c.counts.Close())
	}
	return errors.Join(errs...)
}

// watch begins to count the system calls of both sides, if they are to be counted.
func (n *network) watch(server, client *process) error {
	if n.syscalls == nil {
		return nil
	}
	if err := n.syscalls.watch(server.cmd.Process.Pid); err != nil {
		return err
	}
	return n.syscalls.watch(client.cmd.Process.Pid)
}

func (n *network) unwatch(server, client *process) {
	if n.syscalls != nil {
		n.syscalls.remove(server.cmd.Process.Pid)
		n.syscalls.remove(client.cmd.Process.Pid)
	}
}

// callsOf returns how many system calls each side has made since watch, for each of ops
// operations; nil if they are not counted.
func (n *network) callsOf(server, client *process, ops uint64) (*perSide, error) {
	if n.syscalls == nil || ops == 0 {
		return nil, nil
	}
	c, err := n.syscalls.count(client.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	s, err := n.syscalls.count(server.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	return &perSide{Client: float64(c) / float64(ops), Server: float64(s) / float64(ops)}, nil
}
