// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// The model of memory, compared with a calculation on paper.
func TestMemoryModel(t *testing.T) {
	r := Report{Setup: Setup{Sessions: 100, Buffers: 1000, Window: 10},
		Bytes: Sizes{Initiator: 7, Target: 5, Buffer: 2, Domain: 50, Packets: 1000}}
	for _, c := range []struct{ nodes, sessions, queues, idle, most int }{
		{11, 20, 1, 10*12 + 1050, 10*12 + 1050 + 3*100*2},
		{51, 100, 1, 50*12 + 1050, 50*12 + 1050 + 3*500*2},
		{52, 102, 2, 51*12 + 2100, 51*12 + 2100 + 3*510*2},
		{1001, 2000, 20, 1000*12 + 20*1050, 1000*12 + 20*1050 + 3*10000*2},
	} {
		if m := r.MemoryOf(c.nodes); m.Sessions != c.sessions || m.Queues != c.queues || m.Idle != c.idle || m.Most != c.most || m.Fits != (c.queues == 1) {
			t.Errorf("%+v: %+v", c, m)
		}
	}
}

// The plot is XML with a mark for every point, and the document takes the tables.
func TestScaleDocuments(t *testing.T) {
	r := Report{
		Setup:  Setup{Sessions: 4096, Accepted: 3584, RXBuffers: 2048, Buffers: 8192, Window: 64, FirstWindow: 16, FrameTime: 1200, EchoCost: 1200, SwitchQueue: 2e6},
		Bytes:  Sizes{Initiator: 1, Target: 1},
		Single: []Incast{{Nodes: 10, P99: 20, Fairness: 1}, {Nodes: 100, P99: 200, Fairness: 1}},
		Bulk:   []Incast{{Nodes: 10, P99: 30, Fairness: 1}},
		Memory: []Memory{{Nodes: 10, Measured: 1 << 20}, {Nodes: 20}},
	}
	r.Limits = r.Setup.Bounds()
	d := xml.NewDecoder(bytes.NewReader(r.Plot()))
	circles := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	// A mark for each latency point, each share, Bulk's fairness and each measured
	// memory; 8 more in legends.
	if want := (2 + 1) + (2 + 1) + 1 + 1 + 8; circles != want {
		t.Errorf("%d circles, want %d", circles, want)
	}
	var tables bytes.Buffer
	r.Table(&tables)
	doc, err := Splice("before\n"+beginMark+"stale\n"+endMark+"\nafter", tables.String())
	if err != nil || strings.Contains(doc, "stale") || !strings.HasPrefix(doc, "before\n") || !strings.HasSuffix(doc, "\nafter") ||
		!strings.Contains(doc, "| 100 | 0 k |") || !strings.Contains(doc, "| 2048 | one frame of every node") {
		t.Errorf("%v\n%s", err, doc)
	}
	if again, err := Splice(doc, tables.String()); err != nil || again != doc {
		t.Errorf("writing the tables again changes the document: %v", err)
	}
	if _, err := Splice("no marks", "x"); err == nil {
		t.Error("a document without marks was taken")
	}
}
