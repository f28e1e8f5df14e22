// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// testRun is the attribute of BPF_PROG_TEST_RUN, in union bpf_attr.
type testRun struct {
	program, action    uint32
	inLen, outLen      uint32
	in, out            uint64 // addresses
	repeat, duration   uint32
	contextIn, context uint32
	_                  [2]uint64
	flags, cpu, batch  uint32
	_                  uint32
}

const progTestRun = 10 // enum bpf_cmd

// runOnce runs a program on a packet, and returns what the program returns and the packet
// that comes out. It allocates nothing. The attribute is the caller's, on the heap.
func runOnce(a *testRun, program int, in, out []byte) (action uint32, packet []byte, err error) {
	*a = testRun{
		program: uint32(program), inLen: uint32(len(in)), outLen: uint32(len(out)),
		in: uint64(uintptr(unsafe.Pointer(&in[0]))), out: uint64(uintptr(unsafe.Pointer(&out[0]))),
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, progTestRun, uintptr(unsafe.Pointer(a)), unsafe.Sizeof(*a))
	if errno != 0 {
		return 0, nil, errno
	}
	return a.action, out[:min(a.outLen, uint32(len(out)))], nil
}

// view is a session in the map that the program writes. Its fields are read one by one,
// so two of them may be of different moments.
type view struct{ s *executorSession }

const sessionLen = int(unsafe.Sizeof(executorSession{}))

func viewAt(sessions []byte, place uint32) view {
	return view{(*executorSession)(unsafe.Pointer(&sessions[int(place)*sessionLen : (int(place)+1)*sessionLen][0]))}
}

// touchedView is what the program has applied to a region, in the map that it counts in.
type touchedView struct{ t *executorTouched }

const touchedLen = int(unsafe.Sizeof(executorTouched{}))

func touchedAt(touches []byte, place uint32) touchedView {
	return touchedView{
		(*executorTouched)(unsafe.Pointer(&touches[int(place)*touchedLen : (int(place)+1)*touchedLen][0]))}
}

// count sets whether the program counts.
func (v touchedView) count(on bool) {
	var n uint32
	if on {
		n = 1
	}
	atomic.StoreUint32(&v.t.Counted, n)
}

// arm exchanges, as the program does: see count_touch.
func (v touchedView) arm() { atomic.SwapUint32(&v.t.Armed, 1) }

func (v touchedView) now() Touched {
	by := &v.t.By
	return Touched{
		Reads: atomic.LoadUint64(&by[0].Ops), Writes: atomic.LoadUint64(&by[1].Ops),
		BytesRead: atomic.LoadUint64(&by[0].Bytes), BytesWritten: atomic.LoadUint64(&by[1].Bytes),
	}
}

func (v view) expected() uint32 { return atomic.LoadUint32(&v.s.Expected) }
func (v view) freed() uint32    { return atomic.LoadUint32(&v.s.Freed) }
func (v view) claimed() uint32  { return atomic.LoadUint32(&v.s.Claimed) }
func (v view) ahead() uint64    { return atomic.LoadUint64(&v.s.Ahead) }
func (v view) heard() int64     { return int64(atomic.LoadUint64(&v.s.Heard)) }
func (v view) ops() uint64      { return atomic.LoadUint64(&v.s.Ops) }
func (v view) frames() uint64   { return atomic.LoadUint64(&v.s.Frames) }
