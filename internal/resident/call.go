// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
)

// command is what user space asks the program for: enum command.
type command uint32

const (
	callReceive command = iota
	callBegin
	callFreeze
	callEnd
	callRelease
	callAttend
	callCommit
	callUnclaim
	callAnswer
	callBare
	callThaw
)

// Verdict is what the program says of a frame or a call: enum verdict. Those up to
// Invalid are session.Verdict's.
type Verdict uint32

// The verdicts.
const (
	Drop        Verdict = 0
	Execute     Verdict = 1
	Duplicate   Verdict = 2
	Stale       Verdict = 4
	OutOfWindow Verdict = 5
	Early       Verdict = 6 // session.NoBuffer: it is not kept
	Invalid     Verdict = 8
	Foreign     Verdict = 16 // its turn has come, and the program cannot execute it
	Spent       Verdict = 17 // the session has ended, or has another encapsulation
	Busy        Verdict = 18 // another CPU is at the session
	Unknown     Verdict = 19 // no such session or epoch
	Unsound     Verdict = 20 // damaged, or of a type that is not the program's
	Absent      Verdict = 21 // there is no answer to the frame
	Relayed     Verdict = 22 // user space answers, since what the program sends may be lost
	Torn        Verdict = 23 // the frame, or one before it, has run in part
	NumVerdicts Verdict = 24
)

// callLen is the length of struct call, in bytes.
const callLen = 24

// xdpAborted is the verdict of a call that failed, and of a program that cannot run now.
const xdpAborted = 0

// caller makes calls, for one goroutine at a time.
type caller struct {
	program *ebpf.Program
	in, out []byte
	attr    testRun
	tries   int // most of them: see busyTries
}

func newCaller(p *ebpf.Program) *caller {
	return &caller{tries: busyTries, program: p, in: make([]byte, callLen+MaxFrame+8),
		out: make([]byte, callLen+MaxFrame+8)}
}

// call asks for something, with what follows. It returns the verdict, and the frame that
// is to be sent, if there is one, which is valid until the next call.
func (c *caller) call(cmd command, session, arg uint32, follows []byte) (v Verdict, frame []byte, err error) {
	le := binary.LittleEndian
	b := c.in[:callLen+copy(c.in[callLen:], follows)]
	le.PutUint32(b, uint32(cmd))
	le.PutUint32(b[4:], session)
	le.PutUint32(b[8:], arg)
	le.PutUint32(b[12:], 0)
	le.PutUint32(b[16:], uint32(len(follows)))
	for tries := 0; ; tries++ {
		action, out, err := runOnce(&c.attr, c.program.FD(), b, c.out)
		if err != nil {
			return 0, nil, fmt.Errorf("resident: calling the program: %w", err)
		}
		if action != xdpAborted && len(out) >= callLen {
			if v = Verdict(le.Uint32(out[12:])); v != Busy || tries >= c.tries {
				return v, out[callLen:][:le.Uint32(out[16:])], nil
			}
		} else if tries >= c.tries {
			return 0, nil,
				fmt.Errorf(
					"resident: the program refused command %d for session %#x %d times; the CPU may be overloaded", cmd,
					session, tries)
		}
	}
}

// busyTries is how often a call is made that finds the session, or this CPU's place to
// work, in use: each takes microseconds.
const busyTries = 1 << 16
