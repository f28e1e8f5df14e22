// SPDX-License-Identifier: Apache-2.0

package errno

import (
	"slices"
	"strings"
)

// Closest returns the name that a word may have been meant for: the one that takes the
// fewest changes, and not more than one for each three letters, or else the only one that
// begins or ends with it. Of two neighbours that changed places it takes half a change.
func Closest(word string, names []string) (string, bool) {
	best, changes := "", 2*(len(word)/3+1)
	for _, name := range names {
		if n := distance([]rune(strings.ToLower(word)), []rune(strings.ToLower(name))); n < changes {
			best, changes = name, n
		}
	}
	if best == "" {
		best = partly(word, names)
	}
	return best, best != ""
}

// partly returns the only name that begins with a word, or that ends with it; empty if
// there are several, or the word is short.
func partly(word string, names []string) (whole string) {
	const short = 3
	if len(word) < short {
		return ""
	}
	for _, name := range names {
		if !strings.HasPrefix(name, word) && !strings.HasSuffix(name, "-"+word) {
			continue
		}
		if whole != "" {
			return ""
		}
		whole = name
	}
	return whole
}

// DidYouMean is a question to put behind a word that is not among the names, empty if
// none is close to it.
func DidYouMean(word string, names []string) string {
	if name, is := Closest(word, names); is {
		return ", did you mean " + name + "?"
	}
	return ""
}

// List names at most so many of a list, and ends in "…" if there are more.
func List(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(slices.Concat(names[:most], []string{"…"}), ", ")
}

// distance is twice the number of runes that have to be inserted, left out or replaced
// (Levenshtein), and once that of neighbours that have to change places.
func distance(a, b []rune) int {
	var last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = 2 * j
	}
	for i, x := range a {
		next := make([]int, len(b)+1)
		next[0] = 2 * (i + 1)
		for j, y := range b {
			n := row[j]
			if x != y {
				n += 2
			}
			if i > 0 && j > 0 && x == b[j-1] && a[i-1] == y {
				n = min(n, last[j-1]+1)
			}
			next[j+1] = min(n, row[j+1]+2, next[j]+2)
		}
		last, row = row, next
	}
	return row[len(b)]
}
