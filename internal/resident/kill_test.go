// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// killed is the session of the processes that are killed.
var killed = session.TargetParams{Local: wire.NewSessionID(0, 0, 1, 1), Remote: 9, Epoch: 7, MaxFrame: 1500, Window: 64}

// addFrame makes the request psn of that session: it adds 1 to words of four sizes.
func addFrame(psn uint32) []byte {
	b := make([]byte, 300)
	var rw wire.RecordWriter
	rw.Reset(b[wire.HeaderLen:], 1400)
	one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	for i, dt := range []atomic.Datatype{atomic.Uint8, atomic.Uint16, atomic.Uint32, atomic.Uint64} {
		rw.Append(&wire.Record{Verb: wire.VerbFetch, Op: uint8(atomic.Sum), Datatype: uint8(dt), Key: residentKey, Offset: uint64(8 * i), Count: 1, Operand: one[:dt.Size()]})
	}
	h := wire.Header{Type: wire.Request, Session: uint32(killed.Local), Epoch: killed.Epoch, PSN: psn, Ack: psn - 1, Ops: uint8(rw.Ops())}
	h.Put(b)
	return b[:wire.Seal(b, wire.HeaderLen+rw.Len())]
}

// suffer runs frames, as packets and by calls, each twice, until the process is killed.
func suffer(folder string) error {
	x, err := Adopt(folder, Config{})
	if err != nil {
		return err
	}
	c := newCaller(x.objects.XdpfabCall)
	there, err := wire.NewTemplate(wire.Link{})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if i == 1 {
			fmt.Println("ready")
		}
		s, err := x.state(0)
		if err != nil {
			return err
		}
		frame := addFrame(s.Expected)
		packet := make([]byte, 400)
		packet = packet[:there.Put(packet, copy(packet[there.Len():], frame))]
		for range 2 {
			if i%2 == 0 {
				if v, _, err := c.call(callReceive, s.Id, 0, frame); err != nil || v != Execute && v != Duplicate {
					return fmt.Errorf("verdict %d, %w", v, err)
				}
				continue
			}
			if action, err := x.Program().Run(&ebpf.RunOptions{Data: packet, DataOut: make([]byte, 2048)}); err != nil || action != xdpTX {
				return fmt.Errorf("action %d, %w", action, err)
			}
		}
	}
}

// A process that is killed at any instant leaves each frame run once, and noted, or not
// run; the next process adopts what there is, and goes on.
func TestKill(t *testing.T) {
	first := mustLoad(t, Config{Sessions: 1, Regions: 2})
	folder := testnet.BPFFS(t)
	m, err := NewMemory("words", 64)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := first.Register(m, Region{Key: residentKey, Length: 64, Incarnation: 5, Access: RemoteRead | RemoteWrite}); err != nil {
		t.Fatal(err)
	}
	if _, err := first.begin(newCaller(first.objects.XdpfabCall), &killed, session.FirstPSN(killed.Epoch), 0); err != nil {
		t.Fatal(err)
	}
	if err := first.Pin(folder, Node{Life: 1}); err != nil {
		t.Fatal(err)
	}
	if err := first.Pin(folder, Node{Life: 1}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("pinned twice: %v", err)
	}
	rounds := 8
	if os.Getenv("XDPFAB_LONG") != "" {
		rounds = 100
	}
	if testing.Short() {
		rounds = 5
	}
	var frames uint64
	for round := range rounds {
		killOne(t, folder)
		frames = checkKilled(t, folder, round, frames)
	}
	t.Logf("%d frames ran", frames)
	if err := Remove(folder); err != nil {
		t.Error(err)
	}
	if _, err := Adopt(folder, Config{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("adopted what was removed: %v", err)
	}
}

// memoryOf maps the memory of a region that is registered.
func (x *Executor) memoryOf(key uint64) (*Memory, error) {
	var r executorRegion
	if err := x.objects.Regions.Lookup(key, &r); err != nil {
		return nil, err
	}
	var id uint32
	if err := x.objects.Memories.Lookup(r.Place, &id); err != nil {
		return nil, err
	}
	m, err := ebpf.NewMapFromID(ebpf.MapID(id))
	if err != nil {
		return nil, err
	}
	return mapMemory(m, int(r.Length))
}

// killOne starts a process, and kills it some time after it has begun to work.
func killOne(t *testing.T, folder string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+folder)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if line, _ := lines.ReadString('\n'); line != "" {
		t.Fatalf("the process says %q", line)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the process ended by itself")
	}
}

// checkKilled adopts what a process left, compares what ran with what is in memory,
// and runs a frame more.
func checkKilled(t *testing.T, folder string, round int, before uint64) (frames uint64) {
	t.Helper()
	x, err := Adopt(folder, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if len(x.free) != 0 || len(x.places) != 1 {
		t.Fatalf("places %v are free for sessions, and %v for regions, want none and one", x.free, x.places)
	}
	s, err := x.state(0)
	if err != nil {
		t.Fatal(err)
	}
	if s.Lock != 0 || s.Frames <= before || s.Expected-session.FirstPSN(killed.Epoch) != uint32(s.Frames) {
		t.Fatalf("round %d: %+v, want more than %d frames", round, s, before)
	}
	c := newCaller(x.objects.XdpfabCall)
	if v, _, err := c.call(callReceive, s.Id, 0, addFrame(s.Expected)); v != Execute || err != nil {
		t.Fatalf("verdict %d, %v", v, err)
	}
	if tally, err := x.Tally(); err != nil || tally.Ops != 4 {
		t.Errorf("%d operations are counted, %v; want the 4 of this frame alone", tally.Ops, err)
	}
	m, err := x.memoryOf(residentKey)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	frames = s.Frames + 1
	le := binary.LittleEndian
	var want []byte
	for _, mask := range []uint64{0xff, 0xffff, 0xffffffff, ^uint64(0)} {
		want = le.AppendUint64(want, frames&mask)
	}
	if !bytes.Equal(m.Bytes()[:32], want) {
		t.Fatalf("round %d: %d frames ran, and the words are %x", round, frames, m.Bytes()[:32])
	}
	regions, err := x.Regions()
	if r := regions[residentKey]; err != nil || len(regions) != 1 || r.Incarnation != 5 || r.Length != 64 {
		t.Fatalf("%v, %v", regions, err)
	}
	return frames
}

// A process that dies while it executes a frame by itself leaves a session that is ended;
// the frames that it held come again.
func TestAdoptHalfDone(t *testing.T) {
	first := mustLoad(t, Config{Sessions: 2, Regions: 1})
	folder := testnet.BPFFS(t)
	c := newCaller(first.objects.XdpfabCall)
	if _, err := first.begin(c, &killed, session.FirstPSN(killed.Epoch), 0); err != nil {
		t.Fatal(err)
	}
	other := killed
	other.Local++
	if _, err := first.begin(c, &other, session.FirstPSN(other.Epoch), 0); err != nil {
		t.Fatal(err)
	}
	s, err := first.state(1)
	if err != nil {
		t.Fatal(err)
	}
	// The region of the frame is not the program's.
	if v, _, err := c.call(callReceive, uint32(killed.Local), 0, addFrame(s.Expected)); v != Foreign || err != nil {
		t.Fatalf("verdict %d, %v", v, err)
	}
	if _, _, err := c.call(callAttend, uint32(other.Local), 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := first.Pin(folder, Node{Life: 1}); err != nil {
		t.Fatal(err)
	}
	x, err := Adopt(folder, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	half, err := x.state(1)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := x.state(0)
	if err != nil {
		t.Fatal(err)
	}
	if half.Id == uint32(other.Local) {
		half, whole = whole, half
	}
	if half.Life != lifeEnded || whole.Life != lifeLive || whole.Attended != 0 {
		t.Errorf("%+v, want it to be ended\n%+v, want it to go on", half, whole)
	}
}
