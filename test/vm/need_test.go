// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeAPT stands for apt-get: it fails as often as the file "failures" has lines, with a
// line of it each.
const fakeAPT = `#!/bin/sh
echo "$@" >>"$FAKE/calls"
[ -s "$FAKE/failures" ] || exit 0
head -n 1 "$FAKE/failures"
sed -i 1d "$FAKE/failures"
exit 100
`

// scripts/need waits for another apt, and shows what apt-get says when it fails.
func TestNeedInstalls(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	const lock = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)\n"
	for name, c := range map[string]struct {
		failures string
		calls    int
		says     string // "" means that it succeeds
	}{
		"free":            {"", 2, ""},
		"lists locked":    {lock + lock, 4, ""},
		"dpkg locked":     {"dpkg: error: dpkg frontend lock was locked by another process with pid 7\n", 3, ""},
		"locked for ever": {strings.Repeat(lock, 50), 13, "held by process 7"},
		"no network":      {"E: Failed to fetch http://deb.debian.org\n", 1, "E: Failed to fetch http://deb.debian.org"},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"apt-get": fakeAPT, "id": "#!/bin/sh\necho 0\n", "sleep": "#!/bin/sh\n", "failures": c.failures,
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(filepath.Join(root, "scripts/need"), "no-such-tool")
		cmd.Env = append(os.Environ(), "FAKE="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
		if n := strings.Count(string(calls), "\n"); (err == nil) != (c.says == "") || !strings.Contains(string(out), c.says) || n != c.calls {
			t.Errorf("%s: %v after %d calls, want %d and %q:\n%s%s", name, err, n, c.calls, c.says, calls, out)
		}
	}
}
