// SPDX-License-Identifier: Apache-2.0

package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Report is all that tells one build from another, and with which others it works.
type Report struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`      // that it was built from
	Time     string `json:"commit_time,omitempty"` // of the commit
	Modified bool   `json:"modified,omitempty"`    // the tree had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`

	// Protocols are the versions of what it speaks with others: "wire" with other nodes,
	// "attach" with the programs of this one, "handover" with the daemon that follows.
	Protocols []Protocol `json:"protocols"`
}

// Protocol is one that two builds have to agree on.
type Protocol struct {
	Name     string   `json:"name"`
	Version  int      `json:"version"`
	Features []string `json:"features,omitempty"` // extensions of the version
}

// NewReport describes this build.
func NewReport(protocols ...Protocol) Report {
	info, ok := debug.ReadBuildInfo()
	return report(info, ok, protocols)
}

func report(info *debug.BuildInfo, ok bool, protocols []Protocol) Report {
	r := Report{Version: describe(info, ok), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Protocols: protocols}
	if !ok {
		return r
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Commit = s.Value
		case "vcs.time":
			r.Time = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		}
	}
	return r
}

// Text is the report of a program, in lines.
func (r *Report) Text(program string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s version %s\n", program, r.Version)
	if r.Commit != "" {
		fmt.Fprintf(&b, "  commit    %s of %s", r.Commit, r.Time)
		if r.Modified {
			b.WriteString(", and changes")
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "  built by  %s for %s\n", r.Go, r.Platform)
	for _, p := range r.Protocols {
		line := fmt.Sprintf("  %-8s  version %d", p.Name, p.Version)
		if len(p.Features) > 0 {
			line += ": " + strings.Join(p.Features, " ")
		}
		fmt.Fprintln(&b, line)
	}
	return b.String()
}
