// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// garbage are the rows of docs/tuning.md's table of garbage, and the rows of
// bench/results/latest.txt that they quote, which are in that order.
var garbage = []struct{ name, row string }{
	{"none", "no garbage, initiator on two cores"},
	{"in the initiator, which has two cores", "in the initiator, on two cores"},
	{"the same, GOGC=400", "the same, GOGC=400"},
	{"in the initiator, on one core", "in the initiator, on one core"},
	{"the same, GOGC=400", "the same, GOGC=400"},
	{"in the initiator, on one core, attached to a host", "in the initiator, on one core, attached"},
	{"the same, GOGC=400", "the same, GOGC=400"},
	{"in the target, on one core, which polls", "in the target"},
	{"in the target, resident region", "in the target, resident region"},
}

// The latencies beside garbage in docs/tuning.md are those of the latest full run. With
// -update they are written anew.
func TestTuningFigures(t *testing.T) {
	results, err := os.ReadFile(filepath.Join("..", "..", "bench", "results", "latest.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(results), "\nRound trips of a fetch-add beside 1 GB/s of garbage")
	var rows strings.Builder
	for _, g := range garbage {
		row := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(g.row) + `  +(\S+)  +\S+–\S+ +(\S+) +(\S+) +(\S+) `)
		m := row.FindStringSubmatchIndex(rest)
		if m == nil {
			t.Fatalf("no row %q in the results, behind those before it", g.row)
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s |\n", g.name, rest[m[2]:m[3]], rest[m[4]:m[5]], rest[m[6]:m[7]], rest[m[8]:m[9]])
		rest = rest[m[1]:]
	}
	path := filepath.Join("..", "..", "docs", "tuning.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(\| garbage \| p50 [^\n]*\n\|---[^\n]*\n)((?:\|[^\n]*\n)*)`)
	m := table.FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("docs/tuning.md has no table of garbage")
	}
	switch {
	case m[2] == rows.String():
	case *update:
		anew := strings.Replace(string(text), m[2], rows.String(), 1)
		if err := os.WriteFile(path, []byte(anew), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/tuning.md has other latencies beside garbage than bench/results/latest.txt, which has\n%s"+
			"if that is a new run, run `go test ./internal/layout -update`", rows.String())
	}
}
