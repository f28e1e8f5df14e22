// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

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
