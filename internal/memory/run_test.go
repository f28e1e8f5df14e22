// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// A run has the effects and the answer of its operations executed one by one, however
// hostile they are: out of bounds, misaligned, without rights, unsupported, at
// virtual addresses.
func TestHostileRuns(t *testing.T) {
	le := binary.LittleEndian
	type side struct {
		m    *memory.Memory
		mems [][]byte
	}
	const big = 4 << 20
	mk := func() side {
		table := mr.NewTable()
		s := side{m: memory.New(table)}
		for i, c := range []struct {
			n, from int
			a       mr.Access
			virt    bool
		}{{256, 0, mr.RemoteRead | mr.RemoteWrite, false}, {256, 0, mr.RemoteRead, false}, {256, 0, mr.RemoteWrite, false}, {256, 0, mr.RemoteRead | mr.RemoteWrite, true}, {4, 0, mr.RemoteRead | mr.RemoteWrite, false}, {big, 0, mr.RemoteRead | mr.RemoteWrite, false}, {250, 4, mr.RemoteRead | mr.RemoteWrite, false}, {big - 8, 4, mr.RemoteRead | mr.RemoteWrite, false}, {big - 8, 1, mr.RemoteRead | mr.RemoteWrite, false}} {
			m, err := mr.Alloc(c.n+c.from, mr.AllocOptions{})
			if err != nil {
				t.Fatal(err)
			}
			key := uint64(i)
			if _, err = table.Register(m, mr.Options{Key: &key, Offset: c.from, Length: c.n, Access: c.a, Virtual: c.virt}); err != nil {
				t.Fatal(err)
			}
			s.mems = append(s.mems, m.Bytes())
		}
		return s
	}
	x, y := mk(), mk()
	failed, good := 0, 0
	seeds := uint64(40000)
	if testing.Short() {
		seeds /= 10
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 5))
		var runs, single []byte
		ops := 0
		for k := range 1 + rng.IntN(3) {
			n := 2 + rng.IntN(20)
			verb, op, dt := wire.Verb(1+rng.IntN(3)), uint8(rng.IntN(22)), []uint8{4, 5, 6, 7, 7, 7, 8, 10, 11, 12, 13, 14, 15}[rng.IntN(13)]
			size := wire.ElemSize(dt)
			given := 0
			if op != wire.OpRead {
				given += size
			}
			if verb == wire.VerbCompare {
				given += size
			}
			flags := wire.RecordRun
			shared := rng.IntN(2) == 0
			if shared {
				flags |= wire.RecordShared
			}
			withKey := k == 0 || rng.IntN(2) == 0
			if withKey {
				flags |= wire.RecordKey
			}
			head := uint32(verb) | uint32(op)<<8 | uint32(dt)<<16
			key := rng.Uint64N(10)
			runs = le.AppendUint32(runs, head|uint32(flags)<<24)
			if withKey {
				runs = le.AppendUint64(runs, key)
			}
			runs = le.AppendUint32(runs, uint32(n))
			operand := make([]byte, given)
			fill := func() {
				for i := range operand {
					operand[i] = byte(rng.IntN(4))
				}
			}
			fill()
			if shared {
				runs = append(runs, operand...)
			}
			wild := rng.IntN(2) == 0
			for range n {
				off := uint32(rng.IntN(240/size) * size)
				if wild && rng.IntN(8) == 0 {
					off = []uint32{248, 249, 252, 256, 4, 2, 1, 1 << 31, 1<<32 - 1, 1<<32 - 8, big - 8, big - 4, big, big - 16, big - 32, 0}[rng.IntN(16)]
				}
				if !shared {
					fill()
				}
				runs = le.AppendUint32(runs, off)
				if !shared {
					runs = append(runs, operand...)
				}
				f := uint32(0)
				if withKey {
					f = uint32(wire.RecordKey)
				}
				single = le.AppendUint32(single, head|f<<24)
				if withKey {
					single = le.AppendUint64(single, key)
				}
				single = le.AppendUint32(single, off)
				single = append(single, operand...)
			}
			ops += n
		}
		for len(runs) < 12 {
			runs = append(runs, 0)
		}
		room := 4 + 2*ops + rng.IntN(2000)
		ra, rb := make([]byte, room), make([]byte, room)
		na, fa, rea := execute(x.m, runs, ops, ra)
		nb, fb, reb := execute(y.m, single, ops, rb)
		if rea != reb || x.m.Streak() != y.m.Streak() || na != nb || fa != fb || na > 0 && !bytes.Equal(ra[:na], rb[:nb]) {
			t.Fatalf("seed %d: %d %d %v, one by one %d %d %v", seed, na, fa, rea, nb, fb, reb)
		}
		if fa != 0 {
			failed++
		} else if rea == wire.ReasonOK {
			good++
		}
		for i := range x.mems {
			if len(x.mems[i]) < 10000 || seed%500 == 0 {
				if !bytes.Equal(x.mems[i], y.mems[i]) {
					t.Fatalf("seed %d: memory %d", seed, i)
				}
			}
		}
	}
	if few := int(seeds / 40); failed < few || good < few {
		t.Errorf("%d frames with failures, %d without: want more than a few of each", failed, good)
	}
}

// execute runs a payload if it is well formed.
func execute(m *memory.Memory, payload []byte, ops int, resp []byte) (n int, flags uint8, reason wire.Reason) {
	if _, reason = m.Check(payload, ops); reason != wire.ReasonOK {
		return 0, 0, reason
	}
	defer m.Leave()
	n, flags = m.Execute(resp, 0)
	return n, flags, reason
}
