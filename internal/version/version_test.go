// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	info := func(kv ...string) *debug.BuildInfo {
		b := &debug.BuildInfo{}
		for i := 0; i < len(kv); i += 2 {
			b.Settings = append(b.Settings, debug.BuildSetting{Key: kv[i], Value: kv[i+1]})
		}
		return b
	}
	const commit = "38d5491e2c0f00112233445566778899aabbccdd"
	for name, c := range map[string]struct {
		info *debug.BuildInfo
		ok   bool
		want string
	}{
		"no build information": {nil, false, "0.1.0-dev"},
		"no commit":            {info("GOOS", "linux"), true, "0.1.0-dev"},
		"commit":               {info("vcs.revision", commit, "vcs.modified", "false"), true, "0.1.0-dev+38d5491e2c0f"},
		"changed tree":         {info("vcs.modified", "true", "vcs.revision", commit), true, "0.1.0-dev+38d5491e2c0f.dirty"},
		"short commit":         {info("vcs.revision", "38d5"), true, "0.1.0-dev+38d5"},
	} {
		if got := describe(c.info, c.ok); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if !strings.HasPrefix(Version, number) {
		t.Errorf("Version is %q, want it to begin with %q", Version, number)
	}
}
