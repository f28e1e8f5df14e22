// SPDX-License-Identifier: Apache-2.0

package wire

import "testing"

// The link that a header says is the one that it was made for.
func TestTemplateLink(t *testing.T) {
	for _, l := range links() {
		h, err := NewTemplate(l)
		if err != nil {
			t.Fatal(err)
		}
		if l.Kind == Ethernet && l.LocalIP.IsValid() {
			t.Fatalf("%+v: a link by Ethernet with IP addresses", l)
		}
		if got := h.Link(l.Class); got != l {
			t.Errorf("%+v, want %+v", got, l)
		}
	}
}
