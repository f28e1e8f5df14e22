// SPDX-License-Identifier: Apache-2.0

package share

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/xdpfab/xdpfab/internal/death"
)

// connectsTo, an environment variable, has TestConnects be a process that connects to a
// socket, and dies.
const connectsTo = "XDPFAB_TEST_CONNECTS_TO"

func TestConnects(t *testing.T) {
	path := os.Getenv(connectsTo)
	if path == "" {
		t.Skip("this is no test of its own: see TestDeathBefore")
	}
	if _, err := net.Dial("unix", path); err != nil {
		t.Fatal(err)
	}
	os.Exit(0)
}

// The death of a process is told also if nothing is left of it when it is asked for, as
// after a takeover. Kernels differ in how they say so.
func TestDeathBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	program := exec.Command(os.Args[0], "-test.run=^TestConnects$")
	program.Env = append(os.Environ(), connectsTo+"="+path)
	if out, err := program.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	talk := NewTalk(conn.(*net.UnixConn))
	defer talk.Close()
	end, err := talk.Death()
	if errors.Is(err, death.ErrDied) {
		return
	}
	if err != nil {
		t.Fatalf("of a process that has died: %v", err)
	}
	defer end.Close()
	if err := end.Wait(0); err != nil {
		t.Error(err)
	}
}
