// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"crypto/sha256"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// layoutOf is the digest of what lies in the maps, of the version that it belongs to.
var layoutOf = map[string]string{
	"v3": "d648222dde5f649d",
}

var comment = regexp.MustCompile(`(?s)/\*.*?\*/`)

// A program would take the state of another layout for its own, if that had the same
// version: so a change of state.h, or of a text that is written down, is a new version.
func TestVersionOfState(t *testing.T) {
	text, err := os.ReadFile("headers/state.h")
	if err != nil {
		t.Fatal(err)
	}
	layout := strings.Join(strings.Fields(comment.ReplaceAllString(string(text), "")), " ")
	for _, written := range []any{Node{}, Name{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(written)) {
			layout += fmt.Sprintf("\n%s %s %s", f.Name, f.Type, f.Tag)
		}
	}
	if is := fmt.Sprintf("%x", sha256.Sum256([]byte(layout)))[:16]; is != layoutOf[version] {
		t.Errorf("what lies in the maps has digest %s, and version %s is of %q: raise the version (pin.go, docs/internals/resident.md) if any "+
			"release has had this one, and note the digest here", is, version, layoutOf[version])
	}
}
