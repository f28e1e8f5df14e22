// SPDX-License-Identifier: Apache-2.0

//go:build linux

package measure

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Run is a measurement under way, from its beginning to its end.
type Run struct {
	out   io.Writer
	start time.Time
	usage unix.Rusage
	mem   runtime.MemStats
}

// BeginRun prints that the warm-up is over, and waits for a line of standard input or its
// end: whoever measures looks at the machine in between. It collects garbage first, so
// that the measurement does not pay for the garbage of the warm-up.
func BeginRun(out io.Writer) *Run {
	r := &Run{out: out}
	runtime.GC()
	fmt.Fprintln(out, Begin)
	_, _ = os.Stdin.Read(make([]byte, 1)) // the end of the input is as good as a line
	runtime.ReadMemStats(&r.mem)
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r.usage) // fails for a bad argument only
	r.start = time.Now()
	return r
}

// Start is when measuring began.
func (r *Run) Start() time.Time { return r.start }

// End completes a result with what the process used, and prints it.
func (r *Run) End(result *Result) error {
	result.Seconds = time.Since(r.start).Seconds()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return fmt.Errorf("getrusage: %w", err)
	}
	fmt.Fprintln(r.out, End)
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	result.CPUSeconds = cpuSeconds(&usage) - cpuSeconds(&r.usage)
	result.Involuntary = int64(usage.Nivcsw - r.usage.Nivcsw)
	if result.Extra == nil {
		result.Extra = map[string]float64{}
	}
	result.Extra["allocs_per_op"] = float64(mem.Mallocs-r.mem.Mallocs) / float64(max(result.Ops, 1))
	result.Extra["collections"] = float64(mem.NumGC - r.mem.NumGC)
	return json.NewEncoder(r.out).Encode(result)
}

// TellMallocs tells for each line of the input how many objects this process has
// allocated, until the input ends.
func TellMallocs(in io.Reader, out io.Writer) {
	var mem runtime.MemStats
	for s := bufio.NewScanner(in); s.Scan(); {
		runtime.ReadMemStats(&mem)
		fmt.Fprintln(out, Mallocs, mem.Mallocs)
	}
}

func cpuSeconds(u *unix.Rusage) float64 {
	return float64(u.Utime.Nano()+u.Stime.Nano()) / float64(time.Second)
}
