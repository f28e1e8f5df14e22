// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// asChild makes the test binary open an interface in place of its tests.
const asChild = "XDPFAB_PORT_TEST_OPEN"

func TestMain(m *testing.M) {
	name := os.Getenv(asChild)
	if name == "" {
		os.Exit(m.Run())
	}
	i, err := Open(context.Background(), name, Options{RingSize: 256})
	fmt.Printf("permission=%t %v\n", errors.Is(err, fs.ErrPermission), err)
	if err == nil {
		i.Close()
	}
}

func TestMissingPrivilegesAreNamed(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("needs setpriv (util-linux) to drop capabilities")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pinned := 512 * 2048 >> 10 // KiB
	if coarse(t) {
		pinned *= 2 // larger chunks
	}
	opens := []string{"permission=false <nil>"}
	enough, limited := fmt.Sprint("ulimit -l ", pinned), opens
	if kernel.Before(kernel.FreeBPFMemory) {
		enough = "`ulimit -l unlimited`"
		limited = []string{"RLIMIT_MEMLOCK is 64 KiB", enough}
	}
	for _, c := range []struct {
		name, args string
		limit      string // of locked memory, as for ulimit -l
		want, not  []string
	}{
		{"all there", "--bounding-set=+all", "unlimited", opens, nil},
		{"all there, and a limit", "--bounding-set=+all", "64", limited, []string{"CAP_"}},
		{"no CAP_NET_ADMIN", "--bounding-set=-net_admin", "64", []string{"CAP_NET_ADMIN", "setcap cap_net_admin,cap_net_raw,cap_bpf,cap_perfmon,cap_ipc_lock+ep"}, []string{"CAP_NET_RAW", "CAP_BPF", "CAP_IPC_LOCK"}},
		{"no CAP_NET_RAW", "--bounding-set=-net_raw", "64", []string{"CAP_NET_RAW"}, []string{"CAP_NET_ADMIN", "CAP_BPF", "CAP_IPC_LOCK"}},
		{"no CAP_BPF, but CAP_SYS_ADMIN", "--bounding-set=-bpf", "unlimited", opens, nil},
		{"no CAP_BPF, but CAP_SYS_ADMIN, and a limit", "--bounding-set=-bpf", "64", limited, []string{"CAP_"}},
		{"no CAP_BPF", "--bounding-set=-bpf,-sys_admin", "64", []string{"CAP_BPF"}, []string{"CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK"}},
		{"no CAP_PERFMON", "--bounding-set=-perfmon,-sys_admin", "64", []string{"CAP_PERFMON"}, []string{"CAP_BPF", "CAP_NET_ADMIN", "CAP_NET_RAW"}},
		{"no CAP_IPC_LOCK", "--bounding-set=-ipc_lock", "64", []string{"CAP_IPC_LOCK", fmt.Sprint(pinned, " KiB"), enough}, []string{"CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF"}},
		{"nothing", "--bounding-set=-all", "64", []string{"CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF", "CAP_IPC_LOCK", "setcap cap_net_admin,cap_net_raw,cap_bpf,cap_perfmon,cap_ipc_lock+ep"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := p.A.Command("sh", "-c", "ulimit -l "+c.limit+"; exec setpriv "+c.args+" --inh-caps=-all "+exe)
			cmd.Env = append(os.Environ(), asChild+"="+p.A.IfName)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := c.want
			if !strings.HasPrefix(want[0], "permission") {
				want = append([]string{"permission=true"}, want...)
			}
			for _, w := range want {
				if !strings.Contains(string(out), w) {
					t.Errorf("%q does not say %q", out, w)
				}
			}
			for _, n := range c.not {
				if strings.Contains(string(out), n) {
					t.Errorf("%q blames %s", out, n)
				}
			}
		})
	}
	clean(t, p.A)
}
