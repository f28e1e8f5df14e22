// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestReport(t *testing.T) {
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "38d5491e2c0f0011"},
		{Key: "vcs.time", Value: "2026-11-26T09:37:32Z"}, {Key: "vcs.modified", Value: "true"}}}
	r := report(info, true, []Protocol{{Name: "wire", Version: 1, Features: []string{"memory", "messages"}}, {Name: "handover", Version: 7}})
	want := "xdpfab version " + number + "+38d5491e2c0f.dirty\n  commit    38d5491e2c0f0011 of 2026-11-26T09:37:32Z, and changes\n" +
		"  built by  " + runtime.Version() + " for " + runtime.GOOS + "/" + runtime.GOARCH +
		"\n  wire      version 1: memory messages\n  handover  version 7\n"
	if got := r.Text("xdpfab"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r = report(nil, false, nil)
	if got, want := r.Text("x"), "x version "+number+"\n  built by  "+runtime.Version()+" for "+runtime.GOOS+"/"+runtime.GOARCH+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
