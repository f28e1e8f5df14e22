// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// results are the tables of docs/performance.md: their first lines, and the sections of
// bench/results/latest.txt that they quote, with the number of columns.
var results = []struct {
	head, section string
	columns       int
}{
	{"| one operation in flight | p50, µs |", "Round trips, one operation in flight", 4},
	{"| the target is not polling | p50, µs |", "Round trips when the poller has to be woken first", 4},
	{"| window full | M/s |", "Throughput, window full", 2},
	{"| one message or read of 8 bytes at a time | p50, µs |", "Round trips of messages and reads of 8 bytes", 4},
	{"| messages of 4 KiB, one way, MTU 1500 unless the row says otherwise | M/s |", "Messages of 4 KiB, one way", 2},
	{"| writes and reads of 1 MiB, one way, MTU 1500 unless the row says otherwise | GB/s |", "Writes and reads of 1 MiB, one way", 2},
}

var (
	resultRow = regexp.MustCompile(`^  (\S.*?)  +(\S+) +(\S+–\S+) +(\S+) +(\S+) `)
	aimRow    = regexp.MustCompile(`^  (\S.*?)  +(\S+(?: \S+)?) +[≤≥] \S+(?: \S+)? +(met|MISSED)`)
	aimCells  = regexp.MustCompile(`(?m)^\| ([^|\n]*) \| ([≤≥] [^|\n]*) \| [^|\n]*\| [^|\n]*\| ([^|\n]*) \|$`)
	aimsMet   = regexp.MustCompile(`\d+ of \d+ aims are met\.`)
	runOf     = regexp.MustCompile(`on \d{4}-\d\d-\d\d \(commit \w+\)`)
)

// quotedRows returns the rows of all sections of the results that have a title.
func quotedRows(text, title string, columns int) string {
	var rows strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			inside = strings.HasPrefix(line, title)
		}
		if m := resultRow.FindStringSubmatch(line); m != nil && inside {
			fmt.Fprintf(&rows, "| %s |\n", strings.Join(m[1:2+columns], " | "))
		}
	}
	return rows.String()
}

// The tables of docs/performance.md are those of the latest full run, and its aims have
// what that run measured. With -update they are written anew.
func TestPerformanceFigures(t *testing.T) {
	latest, err := os.ReadFile(filepath.Join("..", "..", "bench", "results", "latest.txt"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "docs", "performance.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(page)
	for _, r := range results {
		rows := quotedRows(string(latest), r.section, r.columns)
		table := regexp.MustCompile(`(` + regexp.QuoteMeta(r.head) + `[^\n]*\n\|---[^\n]*\n)((?:\|[^\n]*\n)*)`)
		if rows == "" || len(table.FindAllString(want, -1)) != 1 {
			t.Fatalf("the results have no section %q, or the page no table %q", r.section, r.head)
		}
		want = table.ReplaceAllString(want, "${1}"+strings.ReplaceAll(rows, "$", "$$"))
	}
	var aims [][]string // of the run: name, measured, verdict
	for line := range strings.Lines(string(latest)[strings.Index(string(latest), "\nAims\n"):]) {
		if m := aimRow.FindStringSubmatch(line); m != nil {
			aims = append(aims, m[1:])
		}
	}
	if n := len(aimCells.FindAllString(want, -1)); n != len(aims) || n == 0 {
		t.Fatalf("the page has %d aims, and the run %d", n, len(aims))
	}
	want = aimCells.ReplaceAllStringFunc(want, func(row string) string {
		m, aim := aimCells.FindStringSubmatch(row), aims[0]
		if aims = aims[1:]; aim[0] != m[1] {
			t.Errorf("the page has the aim %q where the run has %q", m[1], aim[0])
		}
		value, verdict := strings.Replace(aim[1], " x", " ×", 1), strings.ToLower(aim[2])
		return fmt.Sprintf("| %s | %s | %s | %s | %s |", m[1], m[2], value, verdict, m[3])
	})
	want = aimsMet.ReplaceAllString(want, aimsMet.FindString(string(latest)))
	run := regexp.MustCompile(`commit (\w+)\n`).FindStringSubmatch(string(latest))
	if run == nil {
		t.Fatal("the run does not name its commit")
	}
	if !strings.Contains(want, "(commit "+run[1]+")") {
		want = runOf.ReplaceAllString(want, "on "+time.Now().Format(time.DateOnly)+" (commit "+run[1]+")")
	}
	switch {
	case want == string(page):
	case *update:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/performance.md has other figures than bench/results/latest.txt: if that is a new run, run `go test ./internal/layout -update`")
	}
}
