// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// mpiEnv names the folder where scripts/mpi has a Debian with implementations of MPI.
const mpiEnv = "XDPFAB_MPI"

// machines are the two daemons of a world as machines on which user nobody runs programs
// of MPI: each has a root, a name, processes and shared memory of its own.
type machines struct {
	*world
	root   string
	shared string // a folder that both see as /shared
}

// machine returns a command that runs as nobody on the machine of a daemon.
func (m *machines) machine(i int, command ...string) *exec.Cmd {
	side := []*testnet.Side{m.net.A, m.net.B}[i]
	args := append([]string{"--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "sh", "testdata/node.sh",
		m.root, filepath.Dir(m.sockets[i]), m.dir, m.shared, []string{"nodea", "nodeb"}[i]}, command...)
	c := side.Command("unshare", args...)
	// A descendant that is left over when unshare has ended must not be waited for.
	c.WaitDelay = patience
	return c
}

func newMachines(t *testing.T, root string) *machines {
	t.Helper()
	m := &machines{newWorld(t), root, t.TempDir()}
	hosts := fmt.Sprintf("127.0.0.1 localhost\n%s nodea\n%s nodeb\n", m.net.A.IP4, m.net.B.IP4)
	if err := errors.Join(os.Chmod(filepath.Dir(m.shared), 0o755), os.Chmod(m.shared, 0o777),
		os.WriteFile(filepath.Join(m.shared, "hosts"), []byte(hosts), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rsh.sh", "mpi.c", "mpi_windows.c", "mpi_common.h"} {
		text, err := os.ReadFile("testdata/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(m.shared, name), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	serve := m.machine(1, "sh", "/shared/rsh.sh", "serve")
	said := &bytes.Buffer{}
	serve.Stdout, serve.Stderr = said, said
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
		if t.Failed() {
			t.Logf("nodeb:\n%s", tail(said.Bytes()))
		}
	})
	testnet.Eventually(t, "nodeb has a pipe for commands", func() bool {
		_, err := os.Stat(filepath.Join(m.shared, "nodeb"))
		return err == nil
	})
	return m
}

// do runs a command on the first machine, and returns what it prints.
func (m *machines) do(t *testing.T, command ...string) (string, error) {
	t.Helper()
	c := m.machine(0, command...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	if err := c.Start(); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	defer stop()
	err := c.Wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("%w, after %v", err, 2*patience)
	}
	return said.String(), err
}

// openMPI and mpich are the commands that run programs, but for the number of ranks and
// what is special about a job.
var (
	openMPI = []string{"mpirun", "--prtemca", "plm_ssh_agent", "/shared/rsh.sh", "--host", "nodea:8,nodeb:8",
		"--map-by", "node:oversubscribe", "--bind-to", "none"}
	mpich = []string{"/opt/mpich/bin/mpiexec", "-launcher", "ssh", "-launcher-exec", "/shared/rsh.sh",
		"-hosts", "nodea:1,nodeb:1", "-genv", "FI_PROVIDER", "xdpfab", "-genv", "MPIR_CVAR_NOLOCAL", "1"}
	overTCP = []string{"--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "osc", "rdma"}
	// Open MPI looks for devices of one-sided operations (btl) where pml/ob1 is a
	// candidate: with "pml cm" there would be none.
	overMTL = []string{"--mca", "pml", "^ucx", "--mca", "mtl", "ofi", "--mca", "btl", "self,ofi", "--mca", "osc", "rdma",
		"--mca", "opal_common_ofi_provider_include", "xdpfab"}
	overBTL = []string{"--mca", "pml", "ob1", "--mca", "btl", "self,ofi", "--mca", "btl_ofi_mode", "2",
		"--mca", "osc", "rdma", "--mca", "opal_common_ofi_provider_include", "xdpfab"}
)

// jobs are runs of testdata/mpi.c.
var jobs = []struct {
	name, program string
	launch        []string
	ranks, rounds int
	parts         string
}{
	{"btl/tcp", "openmpi", slices.Concat(openMPI, overTCP), 2, 30, "mac"},
	{"mtl/ofi, btl/ofi", "openmpi", slices.Concat(openMPI, overMTL), 2, 30, "macd"},
	{"btl/ofi", "openmpi", slices.Concat(openMPI, overBTL), 2, 30, "macd"},
	{"mtl/ofi, btl/ofi", "openmpi", slices.Concat(openMPI, overMTL), 8, 4, "macd"},
	{"ch4:ofi", "mpich", mpich, 2, 30, "macd"},
	{"ch4:ofi", "mpich", mpich, 8, 4, "macd"},
}

// MPI runs on the provider: ranks of both machines exchange messages, and operate on each
// other's windows, with exact sums. The log has a table of the times.
func TestMPI(t *testing.T) {
	root := os.Getenv(mpiEnv)
	if root == "" {
		t.Skip("make mpi-check builds a Debian with implementations of MPI, and runs programs there")
	}
	m := newMachines(t, filepath.Join(root, "root"))
	built := map[string]bool{}
	for program, compiler := range map[string]string{"openmpi": "/usr/bin/mpicc", "mpich": "/opt/mpich/bin/mpicc"} {
		if _, err := os.Lstat(filepath.Join(m.root, compiler)); err != nil {
			t.Logf("%s is not there: scripts/mpi makes it", program)
			continue
		}
		out, err := m.do(t, compiler, "-O1", "-std=c11", "-D_GNU_SOURCE", "-o", "/shared/"+program,
			"/shared/mpi.c", "/shared/mpi_windows.c")
		if err != nil {
			t.Fatalf("%s: %v\n%s", compiler, err, out)
		}
		built[program] = true
	}
	var table strings.Builder
	for _, j := range jobs {
		t.Run(strings.ReplaceAll(fmt.Sprintf("%s %s %d ranks", j.program, j.name, j.ranks), "/", "-"), func(t *testing.T) {
			if !built[j.program] {
				t.Skip(j.program + " is not there")
			}
			command := append(slices.Clone(j.launch), "-n", fmt.Sprint(j.ranks), "/shared/"+j.program,
				fmt.Sprint(j.rounds), j.parts)
			out, err := m.do(t, command...)
			if err != nil || !strings.Contains(out, "\nok\n") {
				t.Fatalf("%q: %v\n%s", command, err, tail([]byte(out)))
			}
			for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
				if strings.Contains(s.Text(), " least ") {
					fmt.Fprintf(&table, "%-8s %-17s %d ranks  %s\n", j.program, j.name, j.ranks, s.Text())
				}
			}
		})
	}
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("at a load of %s\n%s", load, table.String())
}
