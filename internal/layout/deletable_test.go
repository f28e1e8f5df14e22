// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeletable: each feature that can be deleted has its files still, and each edit of
// the lines elsewhere fits at exactly one place. That the rest builds without the feature
// is what "make deletable" shows, in minutes.
func TestDeletable(t *testing.T) {
	const dir = "../../scripts/deletable.d"
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash, which runs scripts/deletable")
	}
	lists, err := filepath.Glob(filepath.Join(dir, "*.files"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("lists of files: %v, %v", lists, err)
	}
	for _, list := range lists {
		feature := strings.TrimSuffix(filepath.Base(list), ".files")
		t.Run(feature, func(t *testing.T) {
			if out, err := exec.Command("../../scripts/deletable", "--check", feature).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	patches, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		t.Fatal(err)
	}
	for _, patch := range patches {
		if _, err := os.Stat(strings.TrimSuffix(patch, ".patch") + ".files"); err != nil {
			t.Errorf("%s has no list of files: %v", patch, err)
		}
	}
}
