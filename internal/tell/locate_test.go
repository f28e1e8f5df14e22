// SPDX-License-Identifier: Apache-2.0

package tell

import (
	"reflect"
	"testing"
)

func TestLocate(t *testing.T) {
	got := Locate("# c\na = \"\"\"\nb = 1\n\"\"\"\n\"q\\u0041\".x = '''''' # =\nlist = [ # [\n 1,\n]\n" +
		"[t . u]\nv = { w = 1,\n x = 2 }\n[[r]]\n[[r]]\n'k' = \"\\\"\\n\"\n[r.s]\nz=1\n[[r.n]]\r\ny=1\nend='a'")
	want := map[string]int{"a": 2, "qA.x": 5, "list": 6, "t.u": 9, "t.u.v": 10, "r[0]": 12, "r[1]": 13, "r[1].k": 14,
		"r[1].s": 15, "r[1].s.z": 16, "r[1].n[0]": 17, "r[1].n[0].y": 18, "r[1].n[0].end": 19}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
