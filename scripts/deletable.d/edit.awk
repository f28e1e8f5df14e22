# SPDX-License-Identifier: Apache-2.0
#
# Applies a .patch of this folder, below the current folder. It finds lines by their text,
# whatever blanks they have, so that it still applies when others edit nearby:
#
#   @ FILE             the edits below are in this file, unless another feature had it, which
#                      was deleted before: it is in the folder root still
#   -LINE              deletes a line, together with the other - lines of its paragraph
#   +LINE              puts a line there
#   =LINE              a line that stays; for - lines that the file has more than once
#   ~TEXT              deletes a part of the one line that has it
#   ~TEXT ~> OTHER     changes it
#
# Paragraphs end with an empty line. Each must fit at exactly one place.

function plain(s) {
	gsub(/[ \t]+/, " ", s)
	sub(/^ /, "", s)
	sub(/ $/, "", s)
	return s
}

function fail(why, text) {
	print "deletable: " FILENAME ":" FNR ": " file ": " why ": " text > "/dev/stderr"
	failed = 1
}

function load(name) {
	save()
	file = name
	n = 0
	while ((got = (getline line < file)) > 0) all[++n] = line
	if (got == 0) close(file)
	gone = got < 0
	if (gone && (getline line < (root "/" file)) < 0) fail("there is no such file", file)
}

function save(    i) {
	if (file == "" || gone) return
	for (i = 1; i <= n; i++) print all[i] > file
	close(file)
	file = ""
}

# apply makes the edit of the paragraph kinds[1..m], texts[1..m].
function apply(    i, j, k, first, found, at) {
	if (!m) return
	found = 0
	for (i = 1; i <= n && !gone; i++) {
		k = i
		for (j = 1; j <= m; j++) if (kinds[j] != "+" && (k > n || plain(all[k++]) != plain(texts[j]))) break
		if (j > m) { found++; at = i }
	}
	for (first = 1; first < m && kinds[first] == "+"; first++);
	if (!gone && found != 1) fail(found " places have this, want one", texts[first])
	else if (!gone) {
		k = 0
		for (i = 1; i < at; i++) new[++k] = all[i]
		for (j = 1; j <= m; j++) if (kinds[j] == "-") i++; else new[++k] = kinds[j] == "=" ? all[i++] : texts[j]
		for (; i <= n; i++) new[++k] = all[i]
		for (i = 1; i <= k; i++) all[i] = new[i]
		n = k
	}
	m = 0
}

# part makes the edit of a part of a line.
function part(text,    to, i, at, found, p) {
	to = ""
	if (p = index(text, " ~> ")) { to = substr(text, p + 4); text = substr(text, 1, p - 1) }
	for (i = 1; i <= n; i++) if (index(all[i], text)) { found++; at = i }
	if (gone) return
	if (found != 1) { fail(found + 0 " lines have this, want one", text); return }
	p = index(all[at], text)
	all[at] = substr(all[at], 1, p - 1) to substr(all[at], p + length(text))
}

/^@ /     { apply(); load(substr($0, 3)); next }
/^[-+=]/  { kinds[++m] = substr($0, 1, 1); texts[m] = substr($0, 2); next }
/^~/      { apply(); part(substr($0, 2)); next }
/^(#.*)?$/ { apply(); next }
          { fail("want a line that begins with @, -, +, = or ~", $0) }
END       { apply(); save(); exit failed }
