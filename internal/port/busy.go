// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/xdpfab/xdpfab/internal/nic"
)

// A poller that runs the driver by its own calls wants no interrupts meanwhile. So those
// of the queues are held back, by the queue where the kernel can, until the interface is
// closed.

// heldBack are the interrupts that an interface holds back.
type heldBack struct {
	of  nic.Interface
	set *nic.Deferrals // nil if there are none
	was error          // why those of a former process are held back still
}

// napis are the kernel's. Tests replace them.
var napis = nic.KernelNAPIs

// holdBack holds back the interrupts of queues in use and to lend, after what another
// process has left was undone. Without busy polling it undoes that alone, and cannot
// fail: queues whose interrupts are late work, and their user may not even have the file.
// The calling thread is in the interface's network namespace.
func (i *Interface) holdBack(queues int, o Options) (err error) {
	if o.Remember == "" {
		return nil
	}
	i.held.of = nic.Interface{Name: i.name, Index: i.index, Driver: i.driver}
	if o.BusyPoll.Time == 0 {
		i.held.was = nic.Undefer(napis, o.Remember, &i.held.of)
		return nil
	}
	i.held.set, err = nic.Defer(napis, o.Remember, &i.held.of, queues, nic.BusyDeferral)
	if err == nil || heldBackByHand(i.name, i.index) {
		return nil
	}
	return fmt.Errorf("%[1]s: busy polling wants interrupts held back, which cannot be set for its queues "+
		"alone: %[2]w; `echo %[3]d > /sys/class/net/%[1]s/napi_defer_hard_irqs; echo %[4]d > "+
		"/sys/class/net/%[1]s/gro_flush_timeout` sets it for all traffic of the interface; or do without busy polling",
		i.name, err, nic.BusyDeferral.Polls, nic.BusyDeferral.Flush)
}

// StillHeld is why interrupts that a former user of the interface held back are held back
// still, and the remedy; empty if none are.
func (i *Interface) StillHeld() string {
	if i.held.was == nil {
		return ""
	}
	return i.held.was.Error()
}

// heldBackByHand reports whether somebody holds the interrupts of the whole interface
// back. Where sysfs shows another network namespace, as in a container, this is not
// known, and the answer is no.
func heldBackByHand(name string, index int) bool {
	dir := "/sys/class/net/" + name + "/"
	read := func(file string) int {
		text, err := os.ReadFile(dir + file)
		n, bad := strconv.Atoi(strings.TrimSpace(string(text)))
		if errors.Join(err, bad) != nil {
			return -1
		}
		return n
	}
	if read("ifindex") != index {
		return false
	}
	return read("napi_defer_hard_irqs") > 0 && read("gro_flush_timeout") > 0
}

// letIn lets interrupts in again. Close calls it.
func (i *Interface) letIn() error {
	if i.held.set == nil {
		return nil
	}
	set := i.held.set
	i.held.set = nil
	return i.netns.do(func() error { return set.Undo(&i.held.of) })
}
