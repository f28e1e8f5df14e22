// SPDX-License-Identifier: Apache-2.0

package tell

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// Locate returns the line, from 1, of each key in a TOML text: "queues", "region[0]" for
// a header, "region[0].size". The decoder tells the lines of its own errors only, and
// most problems are found later. Keys within inline tables are not listed.
func Locate(text string) map[string]int {
	lines := map[string]int{}
	count := map[string]int{} // elements of each array of tables so far
	var p unstable.Parser
	p.Reset([]byte(text))
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		within := ""
		if e.Kind == unstable.KeyValue {
			within = table
		}
		path, line := keyPath(&p, e.Key(), within, count)
		if e.Kind == unstable.ArrayTable {
			count[path]++
			path = fmt.Sprintf("%s[%d]", path, count[path]-1)
		}
		if e.Kind != unstable.KeyValue {
			table = path
		}
		if lines[path] == 0 {
			lines[path] = line
		}
	}
	return lines
}

// keyPath joins the parts of a key, and returns its line. A part that is an array of
// tables stands for its last element.
func keyPath(p *unstable.Parser, key unstable.Iterator, table string, count map[string]int) (path string, line int) {
	path = table
	for first := true; key.Next(); first = false {
		if first {
			line = p.Shape(key.Node().Raw).Start.Line
		} else if n := count[path]; n > 0 {
			path = fmt.Sprintf("%s[%d]", path, n-1)
		}
		path = strings.TrimPrefix(path+"."+string(key.Node().Data), ".")
	}
	return path, line
}
