// SPDX-License-Identifier: Apache-2.0

//go:build simbugs

package sim

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// edit replaces a piece of source that occurs exactly once in a file.
type edit struct{ file, old, new string }

// bug is a plausible mistake, as edits of the sources.
type bug struct {
	name  string
	tests string // the tests that find it; empty for TestSim
	edits []edit
}

const (
	sessionTarget    = "internal/session/target.go"
	sessionInitiator = "internal/session/initiator.go"
	sessionReceive   = "internal/session/initiator_receive.go"
	sessionSend      = "internal/session/initiator_send.go"
	engineTarget     = "internal/engine/target.go"
	sessionAnswer    = "internal/session/target_send.go"
	executorSession  = "internal/executor/session.go"
	engineParty      = "internal/engine/party.go"
	engineRemote     = "internal/engine/remote.go"
	engineLater      = "internal/engine/later.go"
	enginePack       = "internal/engine/pack.go"
	engineComplete   = "internal/engine/complete.go"
	engineLimbo      = "internal/engine/limbo.go"
	engineFlight     = "internal/engine/flight.go"
)

var bugs = []bug{
	{"dedupe off by one: the last frame runs again", "", []edit{
		{sessionTarget, "case d == 0:\n", "case d == 0, d == -1:\n"}}},
	{"acknowledged without having run, for want of a buffer", "", []edit{
		{executorSession, "return session.NoBuffer, wire.ReasonOK", "s.Executed(nil, 0, ops, 0)\n\t\treturn session.Execute, wire.ReasonOK"}}},
	{"ack covers frames that are only held", "", []edit{
		{sessionAnswer, "Ack: t.expected - 1,", "Ack: t.expected - 1 + uint32(bits.OnesCount64(t.heldMask)),"}}},
	{"epoch of requests ignored", "", []edit{
		{engineTarget, "if h.Epoch != t.epoch {", "if false {"}}},
	{"answers freed one too early", "", []edit{
		{sessionTarget, "for wire.Diff(ack, t.freed) > 0 {", "for wire.Diff(ack, t.freed) > -1 && t.freed+1 != t.expected {"}}},
	{"psn compared without wrap", "", []edit{
		{sessionTarget, "switch d := wire.Diff(h.PSN, t.expected); {", "switch d := int64(h.PSN) - int64(t.expected); {"}}},
	{"a frame that is one early runs out of turn", "", []edit{
		{sessionTarget, "case d == 0:\n", "case d == 0, d == 1 && t.heldMask == 0:\n"}}},
	{"sack map shifted by one", "Test(OneLoss|Resends)", []edit{
		{sessionAnswer, "-int((t.expected+1)&slotMask)", "-int((t.expected+2)&slotMask)"}}},
	{"fence ignored", "", []edit{
		{enginePack, "if f.Flags&FlagFence != 0 && f.sent == 0", "if f.Flags&FlagFence > FlagFence && f.sent == 0"}}},
	{"fence waits for the frame at hand only", "", []edit{
		{enginePack, "(s.w.Ops() > 0 || r.owes())", "s.w.Ops() > 0"}}},
	{"result copied after completion", "", []edit{
		{engineComplete, "segs[i].results(&r)\n\t\tsegs[i].settle()", "segs[i].settle()\n\t\tsegs[i].results(&r)"}}},
	{"reset of another session believed", "", []edit{
		{engineReceive, "e.begun[atTarget{m.Session, h.Epoch}]", "e.begun[atTarget{m.Session, 0}]"},
		{engineConn, "atTarget{known.Session, known.Epoch}", "atTarget{known.Session, 0}"},
		{sessionInitiator, "s.remote == id && s.epoch == epoch", "s.remote == id"},
		{sessionReceive, "wire.ReasonOK || r.Session != s.remote {", "wire.ReasonOK {"},
		{sessionReceive, "if h.Epoch != s.epoch {", "if h.Epoch != s.epoch && h.Type != wire.Reset {"}}},
	{"retransmission changes the payload", "", []edit{
		{sessionSend, "s.Resent++\n", "s.Resent++\n\t\tr.buf[r.n-1] ^= 1\n"}}},
	{"sent once is taken for never sent", "", []edit{
		{sessionInitiator, "s.reqs[(s.next-1)&slotMask].sends == 0", "s.reqs[(s.next-1)&slotMask].sends <= 1"}}},
	{"answer taken from another psn's place in the cache", "", []edit{
		{sessionAnswer, "a := &t.cache[psn&slotMask]\n", "a := &t.cache[psn&(slotMask>>1)]\n"}}},
	{"a clean run reaches over an answer with results", "", []edit{
		{sessionAnswer, "wire.Diff(first-1, t.freed) > 0 && t.cache[(first-1)&slotMask].buf == nil",
			"wire.Diff(first-1, t.freed) > 0"}}},
	{"a frozen session goes on", "", []edit{
		{sessionTarget, "case d >= 0 && t.frozen:", "case d > 1<<30 && t.frozen:"}}},
	{"answers of ended sessions never given back", "", []edit{
		{sessionTarget, "\t\tt.give(t.cache[i].buf)\n", ""}}},
	{"parties that have more sessions now are counted twice", "", []edit{
		{engineParty, "\tc.sizes[p.sessions]--\n", ""}}},
	{"a spare buffer is forgotten when an answer of its own comes back", "", []edit{
		{sessionTarget, "\t\tt.spare = b[:cap(b)]\n\t\treturn\n", "\t\treturn\n"}}},
	{"half an array that ran reported as not executed", "", []edit{
		{engineFlight, "r.Fate == NotExecuted && f.ran {", "r.Fate == NotExecuted && f.ran && false {"}}},
	{"timeouts never resend", "", []edit{
		{sessionSend, "s.toSend |= 1 << (s.una & slotMask)", "_ = s.una"}}},
	{"results of answered parts forgotten at the give-up", "", []edit{
		{engineLater, "f.whatCame()", "make([]byte, len(f.whatCame()))"}}},
	{"an array of which a part was never sent succeeds later", "", []edit{
		{engineLater, "if f.sent < f.elements() {", "if f.sent > f.elements() {"}}},
	{"a target grants features that were not asked for", "", []edit{
		{engineHello, "m.Features & e.cfg.Session.Features", "e.cfg.Session.Features"}}},
	{"a held copy survives the frame and runs a window later", "", []edit{
		{sessionTarget, "\theldMask uint64 // bit psn%64\n", "\theldMask   uint64\n\tfromHeld bool\n"},
		{sessionTarget, "\tbit := uint64(1) << (h.PSN & slotMask)\n", "\tbit := uint64(1) << (h.PSN & slotMask)\n\tt.fromHeld = false\n"},
		{sessionTarget, "\te := &t.held[t.expected&slotMask]\n", "\te := &t.held[t.expected&slotMask]\n\tt.fromHeld = true\n"},
		{sessionTarget, "\tt.unhold(t.expected)", "\tif t.fromHeld {\n\t\tt.unhold(t.expected)\n\t}\n\tt.fromHeld = false"}}},
}

// sources are the packages that a run of the simulator is built from.
var sources = []string{"go.mod", "go.sum", "atomic", "mr", "internal/errno", "internal/wire", "internal/session", "internal/executor", "internal/memory", "internal/engine", "internal/sim"}

// mostSeeds is how many seeds a bug may survive before it is found.
const mostSeeds = "2000"

var numberOf = regexp.MustCompile(`\(number (\d+)\)`)

// TestSeededBugs sows one bug at a time into a copy of the sources and lets the
// simulator find it. An unharmed copy must pass.
func TestSeededBugs(t *testing.T) {
	dir := t.TempDir()
	for _, s := range sources {
		copyTree(t, filepath.Join("..", "..", s), filepath.Join(dir, s))
	}
	// The scaling model measures whole domains: it needs packages that are not in
	// the copy.
	models, err := filepath.Glob(filepath.Join(dir, "internal", "sim", "scale*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range models {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := simulate(dir, "TestSim$"); err != nil {
		t.Fatalf("the sources fail as they are:\n%s", tail(out))
	}
	for _, b := range slices.Concat(bugs, bugsOfTime, bugsOfPairs, bugsOfStaging) {
		t.Run(b.name, func(t *testing.T) {
			undo := b.sow(t, dir)
			defer undo()
			tests := b.tests
			if tests == "" {
				tests = "TestSim$"
			}
			start := time.Now()
			out, err := simulate(dir, tests)
			switch {
			case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
				t.Fatalf("the bug does not compile:\n%s", tail(out))
			case err == nil:
				t.Errorf("not found in %s seeds", mostSeeds)
			case numberOf.MatchString(out):
				t.Logf("found by seed number %s, %.1f s: %s", numberOf.FindStringSubmatch(out)[1],
					time.Since(start).Seconds(), firstFailure(out))
			default:
				t.Logf("found, %.1f s: %s", time.Since(start).Seconds(), firstFailure(out))
			}
		})
	}
}

// sow applies the bug's edits and returns how to take them back.
func (b *bug) sow(t *testing.T, dir string) (undo func()) {
	t.Helper()
	was := map[string][]byte{}
	for _, e := range b.edits {
		path := filepath.Join(dir, e.file)
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), e.old); n != 1 {
			t.Fatalf("%s: %q occurs %d times, want once: adapt the bug to the sources", e.file, e.old, n)
		}
		if was[path] == nil {
			was[path] = src
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(src), e.old, e.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for path, src := range was {
			if err := os.WriteFile(path, src, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// simulate runs the simulator's tests in a copy of the sources. Paths are
// trimmed so that copies share the build cache.
func simulate(dir, tests string) (string, error) {
	cmd := exec.Command("go", "test", "-trimpath", "-vet=off", "-count=1", "-timeout=300s", "-v", "-run", tests,
		"./internal/sim", "-args", "-seeds="+mostSeeds)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// firstFailure returns the line that names the failure.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "_test.go:") || strings.HasPrefix(line, "panic:") {
			return strings.TrimSpace(line)[:min(len(strings.TrimSpace(line)), 200)]
		}
	}
	return tail(out)
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	} else {
		var b []byte
		if b, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(to, b, 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
