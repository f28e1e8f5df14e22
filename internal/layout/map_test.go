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

// mdHeading matches a heading, and notInAnchor what GitHub leaves out of its anchor.
var (
	mdHeading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of a page's headings.
func anchors(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, m := range mdHeading.FindAllStringSubmatch(string(text), -1) {
		plain := notInAnchor.ReplaceAllString(strings.ToLower(mdLink.ReplaceAllString(m[1], "")), "")
		all[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return all
}

// Links between files of the repository lead to files, and headings, that exist.
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
			if strings.Contains(m[1], ":") {
				continue
			}
			links++
			to := path
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(path), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", filepath.ToSlash(path), m[1])
			} else if m[2] != "" && !anchors(t, to)[m[2][1:]] {
				t.Errorf("%s: no heading has the anchor of the link to %s%s", filepath.ToSlash(path), m[1], m[2])
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
