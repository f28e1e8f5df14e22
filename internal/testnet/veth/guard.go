// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// cleanup is the script of the guard: it waits for the end of its input, which
// comes with the end of this process, and removes the namespaces that are left
// then.
const cleanup = `read -r _; for n in /run/netns/"$1"*; do if [ -e "$n" ]; then umount "$n"; rm -f "$n"; fi; done`

// guard starts, once, a process that outlives this one for a moment and removes
// the namespaces that it could not remove itself: a test that ran into its
// deadline, or was killed, runs no cleanup. The devices go with the namespaces.
// The result is the guard's input, which is never written to and stays open as
// long as this process lives.
var guard = sync.OnceValues(func() (leash io.Closer, err error) {
	cmd := exec.Command("sh", "-c", cleanup, "guard", fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	cmd.Dir = "/"
	// A signal to this process's group must not reach the guard.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("veth: the guard of the namespaces: %w", err)
	}
	return in, nil
})
