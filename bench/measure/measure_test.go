// SPDX-License-Identifier: Apache-2.0

//go:build linux

package measure

import (
	"bytes"
	"encoding/json"
	"fmt"
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
