// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// asChild names the check that this test binary runs in place of its tests, when
// another run of it starts it with fewer privileges.
const asChild = "XSK_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(asChild) {
	case "":
		os.Exit(m.Run())
	case "open":
		// lo, in whichever namespace: the socket or the UMEM is refused first.
		u, err := NewUMEM(UMEMConfig{Chunks: 1024})
		if err == nil {
			_, err = Open(Config{UMEM: u, IfIndex: 1})
		}
		os.Stdout.WriteString(report(err))
	case "adopt":
		if err := adoptingChild(); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
	}
}

// report tells the parent what the error is.
func report(err error) string {
	out := "error: "
	for name, e := range map[string]error{
		"ErrPermission": ErrPermission, "ErrMemlock": ErrMemlock, "EPERM": unix.EPERM, "ENOBUFS": unix.ENOBUFS,
	} {
		if errors.Is(err, e) {
			out += name + " "
		}
	}
	if err != nil {
		out += err.Error()
	}
	return out
}

func TestMissingPrivilegeIsNamed(t *testing.T) {
	testnet.Require(t)
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("needs setpriv (util-linux) to drop capabilities")
	}
	p := testnet.NewPair(t, testnet.Options{})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"no CAP_NET_RAW":  {[]string{"--bounding-set=-net_raw", "--inh-caps=-all"}, []string{"ErrPermission", "EPERM", "CAP_NET_RAW"}},
		"no CAP_IPC_LOCK": {[]string{"--bounding-set=-ipc_lock", "--inh-caps=-all"}, []string{"ErrMemlock", "ENOBUFS", "CAP_IPC_LOCK", "RLIMIT_MEMLOCK"}},
	} {
		t.Run(name, func(t *testing.T) {
			line := "ulimit -l 64; exec setpriv " + strings.Join(c.args, " ") + " " + exe
			cmd := p.A.Command("sh", "-c", line)
			cmd.Env = append(os.Environ(), asChild+"=open")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, w := range c.want {
				if !strings.Contains(string(out), w) {
					t.Errorf("%q does not name %s", out, w)
				}
			}
			t.Logf("%s", out)
		})
	}
}
