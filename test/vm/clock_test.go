// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// The frequency that a kernel is told is right to a thousandth: the kernel refuses to
// refine one that is a hundredth off.
func TestFrequencyOfTheCounter(t *testing.T) {
	t.Parallel()
	if !AMD64.Native() {
		t.Skip("the host has no time stamp counter")
	}
	told := tscKHz()
	if told < 100e3 || told > 20e6 {
		t.Fatalf("%d kHz", told)
	}
	t1, c1 := sampleClocks()
	time.Sleep(time.Second)
	t2, c2 := sampleClocks()
	elapsed := t2.Sub(t1)
	counted := time.Duration(float64(c2-c1) / float64(told) * float64(time.Millisecond))
	if off := (counted - elapsed).Abs(); off > elapsed/1000 {
		t.Errorf("at %d kHz the counter says that %v passed, the clock %v", told, counted, elapsed)
	}
}

// Kernels under TCG are told the frequency, others find it out.
func TestClockOnTheCommandLine(t *testing.T) {
	t.Parallel()
	for _, accel := range []Accel{TCG, KVM} {
		c := Config{Image: Image{Kernel: &Kernel{Arch: AMD64}}}
		line := strings.Join(c.arguments(accel, "initrd"), " ")
		for _, flag := range []string{"tsc=reliable", "no_timer_check", "tsc_early_khz="} {
			want := accel == TCG && (flag != "tsc_early_khz=" || AMD64.Native())
			if strings.Contains(line, flag) != want {
				t.Errorf("%s: %s is there: %v, want %v: %s", accel, flag, !want, want, line)
			}
		}
	}
}

func TestCheckClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		guest, host time.Duration
		wrong       bool
	}{
		{0, 0, false}, {time.Second, time.Minute, false}, {61 * time.Second, time.Minute, false},
		{900 * time.Millisecond, 10 * time.Millisecond, false}, {300 * time.Second, 6 * time.Second, true},
	} {
		if err := checkClock(c.guest, c.host); errors.Is(err, errRequest) != c.wrong {
			t.Errorf("%v in the guest and %v on the host: %v", c.guest, c.host, err)
		}
	}
}

// A guest's second is one of the host's.
func TestClockRate(t *testing.T) {
	m := boot(t, Config{Image: Image{Kernel: kernel(t, "sid")}, Accel: TCG})
	begin := time.Now()
	if code, _, errs, err := shell(limited(t), m, "sleep 3", 0); code != 0 || err != nil {
		t.Fatal(code, errs, err)
	}
	if d := time.Since(begin); d < 2900*time.Millisecond {
		t.Errorf("three seconds of the guest took %v", d)
	}
}
