// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// oblige has the program do what others are told about next: that a session runs nothing
// more. If the program does not obey, since some CPU holds the session or the kernel
// refuses the call, no packet is given to it from here on, so that what they are told is
// true.
func (s *Session) oblige(cmd command, arg uint32) bool {
	v, _, err := s.v.c.call(cmd, uint32(s.p.Local), arg, nil)
	if err == nil && (v == Drop || v == Unknown) {
		return true
	}
	if err == nil {
		err = fmt.Errorf("resident: session %#x does not obey command %d: verdict %d", uint32(s.p.Local), cmd, v)
	}
	s.barred = true
	s.v.x.retire(err)
	return false
}

// OnStuck sets what takes the packets from the program, for good, when it does not obey:
// user space has it execute by calls from then on. f is called once, by any engine. It
// must be set before the first session begins.
func (x *Executor) OnStuck(f func(why error)) { x.onStuck = f }

func (x *Executor) retire(why error) {
	x.stuck.Do(func() {
		if x.onStuck != nil {
			x.onStuck(why)
		}
		awaitPrograms()
	})
}

const membarrierGlobal = 1 // MEMBARRIER_CMD_GLOBAL of linux/membarrier.h

// awaitPrograms waits until the programs have ended that are at work on a packet: a
// global memory barrier is a grace period of RCU. Where the kernel has none, as with
// nohz_full, a wait that is a thousand times as long as a frame takes has to do.
func awaitPrograms() {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(20 * time.Millisecond)
	}
}
