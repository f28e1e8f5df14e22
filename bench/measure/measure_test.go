// SPDX-License-Identifier: Apache-2.0

//go:build linux

package measure

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

func TestRunReports(t *testing.T) {
	var out bytes.Buffer
	r := BeginRun(&out)
	sink = make([]byte, 1<<20)
	for time.Since(r.Start()) < 2*time.Millisecond {
	}
	if err := r.End(&Result{Ops: 10}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || lines[0] != Begin || lines[1] != End {
		t.Fatalf("%q", lines)
	}
	var got Result
	if err := json.Unmarshal([]byte(lines[2]), &got); err != nil {
		t.Fatal(err)
	}
	if got.Ops != 10 || got.Seconds < 0.002 || got.Extra["allocs_per_op"] <= 0 {
		t.Errorf("%+v", got)
	}
	if (&Result{Ops: 10, Seconds: 2}).OpsPerSecond() != 5 || (&Result{Ops: 10}).OpsPerSecond() != 0 {
		t.Error("operations a second")
	}
}

// A run begins when it is told to go on, and not before.
func TestRunWaits(t *testing.T) {
	in, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer tell.Close()
	before := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = before }()
	printed, out := io.Pipe()
	began := make(chan *Run)
	go func() { began <- BeginRun(out) }()
	if line, err := bufio.NewReader(printed).ReadString('\n'); err != nil || line != Begin+"\n" {
		t.Fatalf("%q, %v; want %s", line, err, Begin)
	}
	select {
	case <-began:
		t.Fatal("it began before it was told to")
	case <-time.After(20 * time.Millisecond):
	}
	told := time.Now()
	if _, err := tell.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	if r := <-began; r.Start().Before(told) {
		t.Errorf("it began at %v, and was told at %v", r.Start(), told)
	}
}

// A host tells its allocations as often as it is asked, and they grow.
func TestTellMallocs(t *testing.T) {
	var out bytes.Buffer
	TellMallocs(strings.NewReader("\n\n"), &out)
	var first, second uint64
	if n, err := fmt.Sscanf(out.String(), Mallocs+" %d\n"+Mallocs+" %d\n", &first, &second); n != 2 || err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	if first == 0 || second <= first { // it allocates to tell them
		t.Errorf("%d, then %d", first, second)
	}
}

var sink []byte // keeps an allocation on the heap
