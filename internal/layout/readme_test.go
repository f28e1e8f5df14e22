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

// figures are the rows of README's table of speeds: the rows of bench/results/latest.txt
// that they quote, of the round trips and of the rates. rate2 is a further one.
var figures = []struct{ name, trip, rate, note, rate2 string }{
	{"the floor: an AF_XDP echo in C, without a protocol", "floor: AF_XDP in C, no protocol", "floor: counters, 60 a frame, window 32", "60 counters in a frame, nothing else", ""},
	{"**xdpfab**", "xdpfab fetch-add, manual, ThreadDomain", "xdpfab fetch-add, 182 words a post", "182 words in a call", "xdpfab fetch-add, 1 word a post, ThreadDomain"},
	{"xdpfab through a daemon, which shares a core with the target", "xdpfab fetch-add, attached, ThreadDomain", "xdpfab fetch-add, attached, 182 words a post", "182 words in a call", "xdpfab fetch-add, attached, 1 word a post, ThreadDomain"},
	{"xdpfab, 1000 operations a second, so that the target sleeps between them", "1000 operations a second, poller asleep", "", "", ""},
	{"xdpfab over UDP sockets, without privileges", "xdpfab fetch-add, manual, UDP sockets", "xdpfab fetch-add, UDP sockets, 182 words a post", "182 words in a call", ""},
	{"UCX over TCP", "UCX/TCP fadd", "UCX/TCP fadd, 64 outstanding", "", ""},
}

// README's speeds are those of the latest full run, as are its commit and the aims that
// it met. With -update they are written anew, with the date of today.
func TestReadmeFigures(t *testing.T) {
	results, err := os.ReadFile(filepath.Join("..", "..", "bench", "results", "latest.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, f := range figures {
		trip, rate := measured(t, string(results), f.trip)+" µs", "–"
		if f.rate != "" {
			rate = measured(t, string(results), f.rate) + " M"
		}
		if f.note != "" {
			rate += " (" + f.note + ")"
		}
		if f.rate2 != "" {
			rate += ", " + measured(t, string(results), f.rate2) + " M (one in a call)"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", f.name, trip, rate))
	}
	met := regexp.MustCompile(`(?m)^\d+ of \d+ aims are met\.$`).FindString(string(results))
	for _, aim := range []string{"fetch-add RTT p50, ThreadDomain: to the floor", "1 word a post, ThreadDomain, to 182 words a post", "writes of 1 MiB: payload, to the floor that copies"} {
		if !regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(aim) + `  .*MISSED`).MatchString(string(results)) {
			t.Errorf("README says that an aim was missed, and it was met: %s", aim)
		}
	}
	path := filepath.Join("..", "..", "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?s)(\| round trip of a fetch-add[^\n]*\n\|---[^\n]*\n)(.*?)\n\n(\d+ of \d+ aims are met\.|AIMS)`).ReplaceAllString(string(text), "${1}"+strings.Join(rows, "\n")+"\n\n"+met)
	if run := regexp.MustCompile(`commit (\w+)\n`).FindStringSubmatch(string(results)); run == nil {
		t.Error("the run does not name its commit")
	} else if !strings.Contains(want, "(commit "+run[1]+")") {
		want = regexp.MustCompile(`on \d{4}-\d\d-\d\d \(commit \w+\)`).ReplaceAllString(want, "on "+time.Now().Format(time.DateOnly)+" (commit "+run[1]+")")
	}
	if met == "" || !strings.Contains(want, met) || !strings.Contains(want, rows[1]) {
		t.Fatalf("README has no table of speeds, or the run no count of aims: %q", met)
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("README's speeds are not those of bench/results/latest.txt, which are\n%s\n%s\nif that is a new run, run `go test ./internal/layout -update`",
			strings.Join(rows, "\n"), met)
	}
}

// measured returns a median with the least and the most, as a row of the results has it.
// Several rows can have one name: "A > B" is the first row B behind the row A.
func measured(t *testing.T, results, row string) string {
	t.Helper()
	if before, name, found := strings.Cut(row, " > "); found {
		_, results, _ = strings.Cut(results, "\n  "+before+"  ")
		row = name
	}
	m := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(row) + `  +(\S+) +(\S+–\S+) `).FindStringSubmatch(results)
	if m == nil {
		t.Fatalf("no row %q in the results", row)
	}
	return m[1] + " (" + m[2] + ")"
}
