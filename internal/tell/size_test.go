// SPDX-License-Identifier: Apache-2.0

package tell

import "testing"

func TestLikeSize(t *testing.T) {
	for text, want := range map[string]string{
		"4KB": "4KiB", "64k": "64KiB", "1 mb": "1MiB", "2G": "2GiB", "3tib": "3TiB", "4KiBs": "", "KB": "", "4": "", "1.5GB": "", "4XB": "",
	} {
		if want != "" {
			want = ", did you mean " + want + "?"
		}
		if got := LikeSize(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
