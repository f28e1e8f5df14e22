// SPDX-License-Identifier: Apache-2.0

//go:build linux && syncbugs

package sync

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sown is a bug: an edit of a file, and the test that has to find it.
type sown struct{ name, test, file, old, new string }

var sowings = []sown{
	{"a lock is taken before the lease is over", "TestMutex", "wait.go", "> lease+lease/8", "> lease/2"},
	{"a holder counts its lease from after the write", "TestMutex", "lease.go", "h.until = began.Add(h.lease)",
		"h.until = time.Now().Add(2 * h.lease)"},
	{"the first holder in new memory waits for nobody", "TestMutex", "mutex.go", "== at && at > 0; left", "== at; left"},
	{"the turn goes on although the holder beats", "TestMutex", "mutex.go", "seen.expired(turn, m.lease)",
		"seen.expired(at, m.lease)"},
	{"tokens begin anew with the memory", "TestMutex", "lease.go", "token: m.epoch + own>>beatBits",
		"token: own >> beatBits"},
	{"a release does not look whose the lock is", "TestStartUnlockArrivesLate", "release.go",
		"StartCompare(context.WithoutCancel(h.ctx), atomic.Cswap, h.own, h.free)",
		"StartFetch(context.WithoutCancel(h.ctx), atomic.Write, h.free)"},
	{"a lock is tried that another has got", "TestTryLockSlower", "try_lock.go", "if was != next-1 {", "if was > next {"},
	{"a holder is given up that beats", "TestMutexTries", "try_lock.go", "m.tries.expired(mem, turn, m.lease)",
		"m.tries.expired(mem, at, m.lease)"},
	{"a try keeps a ticket", "TestTryLockUnknown", "mutex.go", "m.leave(ctx, mine(got), lease)", "_ = lease"},
	{"a permit is freed that is held", "TestSemaphoreHolders", "semaphore.go",
		"was != 0 && seen[i].expired(was, s.queue.lease)",
		"was != 0 && (seen[i].expired(was, s.queue.lease) || true)"},
	{"a writer waits for no reader", "TestRWMutex", "rwmutex.go", "return i == last && !held, nil", "return i == last, nil"},
	{"a leader of the past tells its value", "TestElection|TestLeader", "election.go", "was.Hi < mine.Hi", "was != mine"},
	{"a result is written over another", "TestOnce", "once.go", onceOld,
		strings.NewReplacer(" && result.Hi == 0", "", "xdpfab.U128{}", "result").Replace(onceOld)},
	{"a result is told that is not written", "TestOnce", "once.go",
		"result, _, err = cell.CompareAndExchange(ctx, xdpfab.U128{}, xdpfab.U128{Hi: 1, Lo: v})",
		"result, _, err = cell.CompareAndExchange(ctx, xdpfab.U128{Hi: 2}, xdpfab.U128{Hi: 1, Lo: v})"},
	{"numbers begin anew with the memory", "TestSequencer", "sequencer.go", "first = m.epoch + end - uint64(n)",
		"first = end - uint64(n)"},
	{"a block of an unknown outcome is given", "TestSequencer", "sequencer.go", "if err == nil {\n\t\t\ts.saw",
		"if err == nil || first > 0 {\n\t\t\ts.saw"},
	{"a put or a take that may have run is denied", "TestQueue", "queue.go",
		"unknown := changes && !errors.Is(err, xdpfab.ErrNotExecuted)",
		"unknown := changes && err == nil && !errors.Is(err, xdpfab.ErrNotExecuted)"},
	{"a queue that is not full or empty seems so", "TestQueue", "queue.go", "case 1:\n\t\t\tp++\n\t\t\tcontinue",
		"case 1:\n\t\t\treturn 0, false, false, nil"},
	{"a loss is forgotten that was found between calls", "TestQueueLostForAWhile", "queue.go", "if q.anew(&q.told, m) {",
		"if q.anew(&q.told, m) && false {"},
	{"a value is taken twice", "TestQueue", "queue.go", "return xdpfab.U128{Hi: 2 * (lap + 1)}", "return was"},
	{"a round is passed before all have come", "TestBarrier", "barrier.go", "len(late(there, b.round+1)) == 0",
		"len(late(there, b.round)) == 0"},
	{"a loss before the wait is forgotten", "TestCountdownLostBefore", "countdown.go",
		"if c.anew(&c.told, m) || m.epoch", "if m.epoch"},
	{"a wait ends before the last task", "TestCountdown", "countdown.go", "err == nil && left == 0", "err == nil && left <= 1"},
	{"a loss is forgotten beside a silent shard", "TestCounterLostBesideSilence", "counter.go", "case err != nil && lost != nil:",
		"case err != nil && lost == err:"},
	{"an addition is repeated that may have run", "TestCounter", "counter.go",
		"case s.restarted(m, err) && errors.Is(err, xdpfab.ErrNotExecuted) && ctx.Err() == nil:",
		"case err != nil && ctx.Err() == nil && s.restarted(m, err):"},
	{"an addition that may have run is denied", "TestCounter", "counter.go",
		"case errors.Is(err, xdpfab.ErrNotExecuted):\n\t\t\treturn err", "case err != nil:\n\t\t\treturn xdpfab.ErrNotExecuted"},
	{"values that may be counted are denied", "TestHistogram", "histogram.go",
		"case errors.Is(err, xdpfab.ErrNotExecuted):\n\t\t\treturn err", "case err != nil:\n\t\t\treturn xdpfab.ErrNotExecuted"},
	{"values are counted in the next range", "TestHistogram", "histogram.go", "return v <= h.bounds[i]", "return v < h.bounds[i]"},
	{"one more than the quota is admitted", "TestLimiter", "limiter.go", "-1)+n <= l.quota, nil", "-1)+n <= l.quota+1, nil"},
	{"requests that may be counted are counted again", "TestLimiterUnknown", "limiter.go",
		"case errors.Is(err, xdpfab.ErrNotExecuted) && restarted &&", "case restarted &&"},
	{"scores are not posted again in new memory", "TestBoard", "board.go", "maps.Copy(b.todo, b.best)",
		"maps.Copy(b.todo, b.todo)"},
}

const onceOld = `if err == nil && result.Hi == 0 {
		if v, err = f(h.Context(), h.Token()); err != nil {
			return 0, false, err
		}
		result, _, err = cell.CompareAndExchange(ctx, xdpfab.U128{},`

// TestSown sows one bug at a time, and lets the test of the part find it.
func TestSown(t *testing.T) {
	for _, s := range sowings {
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			src, err := os.ReadFile(s.file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(src), s.old); n != 1 {
				t.Fatalf("%s has %q %d times, want once", s.file, s.old, n)
			}
			out, err := s.sow(t, strings.Replace(string(src), s.old, s.new, 1))
			switch {
			case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
				t.Fatalf("the bug does not compile:\n%s", out)
			case err == nil:
				t.Error("not found")
			default:
				t.Logf("found: %s", failure(out))
			}
		})
	}
}

// sow runs the test with another text in place of the file's.
func (s *sown) sow(t *testing.T, src string) (string, error) {
	dir := t.TempDir()
	other, overlay := filepath.Join(dir, s.file), filepath.Join(dir, "overlay.json")
	at, err := filepath.Abs(s.file)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{at: other}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{other: src, overlay: string(b)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-vet=off", "-count=1", "-timeout", "10m", "-overlay", overlay,
		"-run", "^("+s.test+")$", ".")
	cmd.Env = append(os.Environ(), "XDPFAB_SEEDS=24")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// failure is the first line of a test's output that says what was wrong.
func failure(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "_test.go:") && !strings.Contains(line, "times held") || strings.Contains(line, "panic:") {
			return strings.TrimSpace(line)[:min(len(strings.TrimSpace(line)), 200)]
		}
	}
	return out
}
