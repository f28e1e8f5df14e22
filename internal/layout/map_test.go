// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ARCHITECTURE.md is a map: short, with every folder of code.
func TestMap(t *testing.T) {
	const most = 13_000 // bytes
	page, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(page) > most {
		t.Errorf("ARCHITECTURE.md has %d bytes, want at most %d: details belong into docs/internals", len(page), most)
	}
	for dir := range imports {
		if !strings.Contains(string(page), "`"+dir+"`") {
			t.Errorf("ARCHITECTURE.md does not say what `%s` holds", dir)
		}
	}
}

// mdLink matches the target of a link, without its anchor.
var mdLink = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)

// Links between files of the repository lead to files that exist.
func TestLinksLeadSomewhere(t *testing.T) {
	root, links := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range mdLink.FindAllStringSubmatch(string(text), -1) {
			if m[1] == "" || strings.Contains(m[1], ":") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", filepath.ToSlash(path), m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links < 20 {
		t.Errorf("only %d links looked at", links)
	}
}
