// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The recipes that docs/restarts.md prints are those that test/e2e runs.
func TestPrinted(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "restarts.md"))
	source, err2 := os.ReadFile("recipes.go")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	functions := regexp.MustCompile(`(?ms)^func .*?^}\n`).FindAllString(string(source), -1)
	printed := 0
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for _, f := range regexp.MustCompile(`(?ms)^func .*?^}\n`).FindAllString(block[1], -1) {
			if printed++; !slices.Contains(functions, f) {
				t.Errorf("docs/restarts.md prints a recipe that is not in recipes.go:\n%s", f)
			}
		}
		if !strings.HasPrefix(block[1], "func ") {
			t.Errorf("docs/restarts.md prints code that no test runs:\n%s", block[1])
		}
	}
	if printed != len(functions) {
		t.Errorf("docs/restarts.md prints %d recipes, want all %d", printed, len(functions))
	}
}
