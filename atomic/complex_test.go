// SPDX-License-Identifier: Apache-2.0

package atomic

import "testing"

// TestComplexAlignedAsInC: C aligns a complex number as its parts. No addition to one
// that is aligned to no more may be lost, and none may be torn: every reader sees
// both parts of the same sum, also across a cache line.
func TestComplexAlignedAsInC(t *testing.T) {
	for _, dt := range []Datatype{FloatComplex, DoubleComplex, LongDoubleComplex} {
		t.Run(dt.String(), func(t *testing.T) {
			part := dt.Size() / 2
			b, sum := aligned(128)[64-part:][:dt.Size()], aligned(dt.Size())
			if err := Apply(Base, Write, dt, b, make([]byte, dt.Size()), nil, nil, 1); err != nil {
				t.Fatal(err)
			}
			one := oneOf(dt)
			copy(one[part:], one[:part]) // 1+i
			together(func(int) {
				for range raceRounds {
					KernelOf(Base, Sum, dt)(b, one, nil, nil)
				}
			}, func(int) {
				seen := make([]byte, dt.Size())
				for range raceRounds {
					KernelOf(Fetch, Read, dt)(b, nil, nil, seen)
					if string(seen[:part]) != string(seen[part:]) {
						t.Errorf("torn: %x", seen)
						return
					}
				}
			})
			for range raceWorkers * raceRounds {
				KernelOf(Base, Sum, dt)(sum, one, nil, nil)
			}
			if string(b) != string(sum) {
				t.Errorf("%x; want %x", b, sum)
			}
			if err := Apply(Base, Sum, dt, aligned(2 * dt.Size())[part/2:], one, nil, nil, 1); err == nil {
				t.Errorf("aligned to %d: accepted", part/2)
			}
		})
	}
}
