// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"io"
	"time"
)

// Verdict is how a step ended.
type Verdict string

// The verdicts.
const (
	OK       Verdict = "ok"
	Doubtful Verdict = "doubtful" // it may be right: Detail says what cannot be known
	Failed   Verdict = "failed"
	LeftOut  Verdict = "left out" // Detail says why
)

// Place is where the cause of a failure lies.
type Place string

// The places.
const (
	Here  Place = "here"  // on this node
	There Place = "there" // at the peer or on the way: it does not answer
	Part  Place = "part"  // the peer answers, and something else is wrong
)

// Step is one look at the way to a peer.
type Step struct {
	Name         string  `json:"step"`
	Verdict      Verdict `json:"verdict"`
	Detail       string  `json:"detail"`
	Remedy       string  `json:"remedy,omitempty"`
	Milliseconds float64 `json:"milliseconds"`
	Place        Place   `json:"-"`
}

// Report is the outcome of a diagnosis.
type Report struct {
	Peer      string `json:"peer"`
	Interface string `json:"interface"`
	OK        bool   `json:"ok"` // the peer answers, and no step has failed
	Steps     []Step `json:"steps"`
	// Cause and Remedy are those of the first step that failed, and of all the evidence
	// if the peer does not answer; empty if OK.
	Cause  string `json:"cause,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	Failed Place  `json:"failed,omitempty"` // where
}

// conclude fills in the outcome. An early step can fail on a way that is not needed: if
// the peer has answered, only what else is wrong counts.
func (r *Report) conclude(f *Finding, answered bool) {
	for _, s := range r.Steps {
		if s.Verdict != Failed || answered && s.Place != Part || r.Failed != "" {
			continue
		}
		r.Failed, r.Cause, r.Remedy = s.Place, s.Detail, s.Remedy
	}
	if r.Failed == "" && !answered {
		r.Failed, r.Cause, r.Remedy = Here, "nothing was asked of the peer", "see the steps that were left out"
	}
	if r.Failed == There {
		c := f.Causes()[0]
		if r.Cause, r.Remedy = c.Text, c.Remedy; !c.Sure {
			r.Cause = "probably " + c.Text
		}
	}
	r.OK = answered && r.Failed == ""
}

// Text prints a step as a line, with its remedy below.
func (s *Step) Text(w io.Writer) {
	fmt.Fprintf(w, "%-14s %-8s %8s  %s\n", s.Name, s.Verdict, clock(s.Milliseconds), s.Detail)
	if s.Remedy != "" {
		fmt.Fprintf(w, "%33s-> %s\n", "", s.Remedy)
	}
}

// clock prints milliseconds.
func clock(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	if d >= time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f ms", ms)
}

// Text prints the conclusion.
func (r *Report) Text(w io.Writer) {
	if r.OK {
		fmt.Fprintf(w, "\n%s answers, and no step has failed.\n", r.Peer)
		return
	}
	fmt.Fprintf(w, "\ncause:  %s\nremedy: %s\n", r.Cause, r.Remedy)
}
