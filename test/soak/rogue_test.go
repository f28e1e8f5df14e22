// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Rogues are guests that break the rules, several at a time, in a process of their own.
// Each makes random calls, changes its memory, its size and its seals when the daemon has
// it, reads no answers, and ends at random.

const (
	envSeed = "XDPFAB_SOAK_SEED"
	rogues  = 4 // at a time
)

// rogueMain is rogues one after another until the process is killed.
func rogueMain() error {
	seed, err := strconv.ParseUint(os.Getenv(envSeed), 10, 64)
	if err != nil {
		return err
	}
	peer, err := wire.ParseAddr(os.Getenv(envAddress))
	if err != nil {
		return err
	}
	for i := range uint64(rogues) {
		go func() {
			for life := uint64(0); ; life++ {
				r := &rogue{rnd: rand.New(rand.NewPCG(seed, i<<32|life)), peer: peer}
				r.live(os.Getenv(fi.ControlEnv))
				time.Sleep(time.Millisecond) // at most so many a second
			}
		}()
	}
	select {}
}

// rogue is one of them.
type rogue struct {
	rnd     *rand.Rand
	peer    wire.Addr
	conn    *net.UnixConn
	talk    *share.Talk
	calls   uint64
	posted  int      // entries
	fds     []int    // of its memory, first the segment
	bell    []int    // its end of the doorbell, when it has attached
	origins []uint64 // of its endpoints
	numbers []uint16 // of endpoints, scalable ones included, that it has asked for
	keys    []uint64 // of its regions
}

// live is a life of a rogue.
func (r *rogue) live(path string) {
	if r.dial(path) != nil { // the daemon may be ending at the moment
		return
	}
	defer share.CloseAll(r.fds)
	defer r.talk.Close()
	r.talk.Hurry(100 * time.Millisecond)
	sizes := share.Sizes{Entries: 16 << r.rnd.IntN(3), Arena: share.MinArena, Arrivals: share.MinArrivals}
	segment := r.memory(sizes.Len())
	head := binary.NativeEndian.AppendUint32(nil, share.Magic)
	head = binary.NativeEndian.AppendUint32(head, share.Version)
	head = binary.NativeEndian.AppendUint64(head, uint64(sizes.Entries))
	_, _ = unix.Pwrite(segment, binary.NativeEndian.AppendUint64(head, uint64(sizes.Arena)), 0)
	err := r.call(share.CallAttach, share.Attach{Version: share.Version, Sizes: sizes}, segment)
	if err == nil {
		r.bell, err = r.talk.Receive(&share.Reply{})
	}
	defer func() { share.CloseAll(r.bell) }()
	if err != nil || len(r.bell) == 0 {
		return
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	defer r.talk.End()
	if r.one(4) {
		defer r.idle() // it reads nothing; if it cannot call, it stays for a while
	} else {
		reading.Go(r.listen)
	}
	for range r.rnd.IntN(100) {
		if r.step() != nil {
			return
		}
		if r.one(4) {
			time.Sleep(time.Duration(r.rnd.IntN(5)) * time.Millisecond)
		}
	}
	r.idle()
}

// idle lets takeovers find it as it is.
func (r *rogue) idle() { time.Sleep(time.Duration(r.rnd.IntN(300)) * time.Millisecond) }

// one is true once in n times.
func (r *rogue) one(n int) bool { return r.rnd.IntN(n) == 0 }

func (r *rogue) dial(path string) error {
	c, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	r.conn = c.(*net.UnixConn)
	r.talk = share.NewTalk(r.conn)
	_ = r.conn.SetDeadline(time.Now().Add(patience))
	_, err = io.WriteString(c, "POST "+share.AttachPath+" HTTP/1.1\r\nHost: x\r\n"+
		"Connection: Upgrade\r\nUpgrade: xdpfab\r\nContent-Length: 0\r\n\r\n")
	var answer []byte
	for one := make([]byte, 1); err == nil && !strings.HasSuffix(string(answer), "\r\n\r\n"); answer = append(answer, one[0]) {
		_, err = c.Read(one) // what follows is not for this reader
	}
	if err == nil && !strings.Contains(string(answer), " 101 ") {
		err = fmt.Errorf("%s", answer)
	}
	if err != nil {
		_ = c.Close()
	}
	return err
}

// listen takes the answers.
func (r *rogue) listen() {
	for {
		var reply share.Reply
		fds, err := r.talk.Receive(&reply)
		share.CloseAll(fds)
		if err != nil {
			return
		}
	}
}

func (r *rogue) call(verb string, args any, fds ...int) error {
	text, err := json.Marshal(args)
	if err != nil {
		return err
	}
	r.calls++
	return r.talk.Send(share.Call{ID: r.calls, Verb: verb, Arguments: text}, fds...)
}

// memory is a memfd, mostly sealed as the daemon wants it.
func (r *rogue) memory(size int) int {
	fd, err := unix.MemfdCreate("rogue", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1
	}
	r.fds = append(r.fds, fd)
	_ = unix.Ftruncate(fd, int64(size))
	if !r.one(10) {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	}
	return fd
}

// spoil changes memory that the daemon may have.
func (r *rogue) spoil() {
	fd := some(r, r.fds)
	switch r.rnd.IntN(3) {
	case 0:
		seals := []int{unix.F_SEAL_WRITE, unix.F_SEAL_FUTURE_WRITE, unix.F_SEAL_SEAL}
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, some(r, seals))
	case 1:
		_ = unix.Ftruncate(fd, int64([]int{0, 4096, 1 << 30}[r.rnd.IntN(3)]))
	case 2:
		_ = unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 1<<16)
	}
}

// scribble writes numbers into the segment: anywhere, entries with their number, or one
// of the positions. It wakes the daemon.
func (r *rogue) scribble() {
	write := func(at int, n uint64) {
		_, _ = unix.Pwrite(r.fds[0], binary.NativeEndian.AppendUint64(nil, n), int64(at))
	}
	small := func() uint64 { return r.rnd.Uint64() >> r.rnd.IntN(64) }
	switch {
	case r.one(5):
		write(64*(1+r.rnd.IntN(9)), small())
	case r.one(2):
		write(4096+8*r.rnd.IntN(8192), small())
	default:
		r.posted += r.rnd.IntN(3)
		for at := range 16 * (r.posted % 16) {
			write(4096+8*at, small())
		}
		write(64, uint64(r.posted))
	}
	_, _ = unix.Write(r.bell[0], []byte{1})
}

// some is one of a list, or nothing.
func some[T any](r *rogue, list []T) (x T) {
	if len(list) > 0 {
		x = list[r.rnd.IntN(len(list))]
	}
	return x
}

// step is something that a guest may or may not do.
func (r *rogue) step() error {
	wanted := 100 + r.rnd.IntN(60) // of an endpoint, so that there are collisions
	if r.one(8) {
		wanted = fi.AnyNumber
	}
	number := some(r, r.numbers)
	switch r.rnd.IntN(21) {
	case 0, 1, 2:
		ep := share.Endpoint{Number: wanted, Highest: r.one(4), Posts: r.one(3), Connected: r.one(5),
			Origin: r.rnd.Uint64() >> r.rnd.IntN(64)}
		if r.one(3) {
			if ep.Block = &number; r.one(2) {
				ep.Number = int(number)
			}
		}
		r.numbers = append(r.numbers, uint16(ep.Number))
		r.origins = append(r.origins, ep.Origin)
		return r.call(share.CallEndpoint, ep)
	case 3, 4:
		return r.call(share.CallServe, share.Serve{Endpoint: number, On: !r.one(4), Events: r.one(2), Messages: r.one(2),
			Tally: r.rnd.IntN(3)})
	case 5:
		return r.call([]string{share.CallDrop, share.CallLeave}[r.rnd.IntN(2)], some(r, r.origins))
	case 6:
		r.numbers = append(r.numbers, uint16(wanted))
		return r.call(share.CallBlock, share.Block{Number: wanted, Length: 1 + r.rnd.IntN(4)})
	case 7:
		return r.call(share.CallUnblock, number)
	case 8:
		r.numbers = append(r.numbers, uint16(wanted))
		return r.call(share.CallPassive, share.Passive{Number: wanted})
	case 9:
		return r.call([]string{share.CallListen, share.CallHear, share.CallUnlisten}[r.rnd.IntN(3)], number)
	case 10, 11:
		x := share.Region{Key: r.rnd.Uint64(), Access: uint8(r.rnd.IntN(4)), Name: fmt.Sprint("rogue", r.rnd.IntN(20)),
			Length: 1 + r.rnd.IntN(4096), Incarnation: r.rnd.Uint32()}
		r.keys = append(r.keys, x.Key)
		return r.call(share.CallRegister, x, r.memory(4096))
	case 12:
		return r.call([]string{share.CallDeregister, share.CallKeep, share.CallKeep}[r.rnd.IntN(3)], some(r, r.keys))
	case 13:
		return r.call(share.CallTallies, nil, r.memory(share.TalliesLen-4096))
	case 14:
		return r.call(share.CallObserve, share.Observe{Key: some(r, r.keys), Tally: r.rnd.IntN(5)})
	case 15:
		return r.call(share.CallTakeBack, fmt.Sprint("rogue", r.rnd.IntN(20)))
	case 16:
		return r.call(share.CallPeer, share.Peer{Origin: some(r, r.origins), Addr: share.Addr(r.peer)})
	case 17, 18:
		r.spoil()
		return nil
	case 19:
		r.scribble()
		return nil
	}
	var err error
	for n := r.rnd.IntN(300); n > 0 && err == nil; n-- {
		err = r.call(share.CallCounters, nil)
	}
	return err
}
