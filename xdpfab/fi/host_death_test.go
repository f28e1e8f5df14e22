// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// orphanage is the environment of a process that connects, and leaves the connection to a
// child when it ends.
const orphanage = "XDPFAB_TEST_ORPHANAGE"

// TestLeavesAnOrphan is that process.
func TestLeavesAnOrphan(t *testing.T) {
	path := os.Getenv(orphanage)
	if path == "" {
		t.Skip("this is no test of its own: see TestGuestDies")
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := conn.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "600")
	child.ExtraFiles = []*os.File{f}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("child=%d\n", child.Process.Pid)
	os.Exit(0)
}

// The end of a program is noticed though a child of it has the connection.
func TestGuestDies(t *testing.T) {
	a, _, _ := pipeWithRegion(t, 4096)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hosted := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = a.Hosting().Serve(conn.(*net.UnixConn), host.GuestLimits{Attach: time.Hour})
		}
		hosted <- err
	}()
	program := exec.Command(os.Args[0], "-test.run=^TestLeavesAnOrphan$")
	program.Env = append(os.Environ(), orphanage+"="+path)
	out, err := program.Output()
	_, text, _ := strings.Cut(string(out), "child=")
	text, _, _ = strings.Cut(text, "\n")
	child, err2 := strconv.Atoi(text)
	if err != nil || err2 != nil {
		t.Fatalf("%v, %v: %s", err, err2, out)
	}
	defer func() { _ = unix.Kill(child, unix.SIGKILL) }()
	select {
	case err := <-hosted:
		if err != nil {
			t.Errorf("the end of a program: %v", err)
		}
	case <-time.After(testnet.Patience):
		t.Error("the program has ended, and its host does not notice")
	}
	if err := unix.Kill(child, 0); err != nil {
		t.Errorf("the child with the connection: %v", err)
	}
}
