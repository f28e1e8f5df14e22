// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// dice is the one source of chance of a run.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 0x78647066))} }

func (d dice) chance(p float64) bool { return p > 0 && d.Float64() < p }

// between returns a value from lo to hi, both included.
func (d dice) between(lo, hi int64) int64 { return lo + d.Int64N(hi-lo+1) }

// exp returns an exponentially distributed duration of the given mean, at most
// ten times as long.
func (d dice) exp(mean int64) int64 { return int64(min(d.ExpFloat64(), 10) * float64(mean)) }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// unlucky is a random generator for engines. Its values never repeat, since
// epochs must not, but are otherwise as unfavourable as possible: sessions of
// successive lives get the same tag, and their psns lie side by side around the
// wrap. True randomness would produce such neighbours once in billions of runs.
type unlucky struct {
	d       dice
	inverse uint32 // of the factor that makes first psns from epochs
	used    map[uint32]bool
	tag     uint64
}

func newUnlucky(d dice) *unlucky {
	factor := session.FirstPSN(1)
	inverse := factor // Newton's iteration: each round doubles the correct bits
	for range 5 {
		inverse *= 2 - factor*inverse
	}
	return &unlucky{d: d, inverse: inverse, used: map[uint32]bool{}, tag: d.Uint64N(wire.MaxTags - 1)}
}

// next returns a value whose low half is an epoch with a first psn near all
// others, and whose remainder, from which session ids take their tag, is always
// the same.
func (u *unlucky) next() uint64 {
	psn := uint32(0)
	for u.used[psn] {
		spread := len(u.used) + session.MaxWindow/4
		psn = uint32(u.d.IntN(2*spread) - spread)
	}
	u.used[psn] = true
	v := u.d.Uint64()<<32 | uint64(psn*u.inverse)
	const tags = wire.MaxTags - 1
	for v%tags != u.tag { // the high half takes all values, so the loop ends
		v += 1 << 32
	}
	return v
}
