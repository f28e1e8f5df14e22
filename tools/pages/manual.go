// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// manual has what all pages of a program share.
type manual struct {
	section       int
	version, date string
}

// page returns the page of a command, in the language of man(7).
func (m manual) page(path []string, h help) string {
	var b strings.Builder
	name := strings.Join(path, "-")
	fmt.Fprintf(&b, ".TH %q %q %q %q %q\n", strings.ToUpper(name), fmt.Sprint(m.section), m.date, "xdpfab "+m.version,
		"xdpfab manual")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(name), escape(h.title(name)))
	b.WriteString(".SH SYNOPSIS\n")
	for _, line := range h.usage {
		fmt.Fprintf(&b, ".nf\n%s\n.fi\n", escape(strings.TrimSpace(line)))
	}
	b.WriteString(".SH DESCRIPTION\n")
	prose(&b, h.long)
	if len(h.commands) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range h.commands {
			if c.name == "help" || c.name == "completion" {
				continue
			}
			fmt.Fprintf(&b, ".TP\n.BR %s (%d)\n%s\n", escape(name+"-"+c.name), m.section, escape(c.text))
		}
	}
	list(&b, "OPTIONS", h.flags)
	list(&b, "OPTIONS FOR THE INTERFACE, AND THE WAY TO THE PEER", h.way)
	list(&b, "OPTIONS OF ALL COMMANDS", h.global)
	if len(h.examples) > 0 {
		b.WriteString(".SH EXAMPLES\n")
		verbatim(&b, h.examples)
	}
	b.WriteString(".SH SEE ALSO\n" + m.others(path) + "\n")
	return b.String()
}

// title is what NAME says of a name, in small letters, as manual pages do: the description
// in the list of commands, or the first sentence without the name.
func (h help) title(name string) string {
	title := h.short
	if title == "" {
		title, _, _ = strings.Cut(strings.Join(h.long, " "), ". ")
		title, _, _ = strings.Cut(strings.TrimPrefix(title, name+" "), ": ")
	}
	if len(title) > 1 && unicode.IsLower(rune(title[1])) {
		title = strings.ToLower(title[:1]) + title[1:]
	}
	return title
}

// others names the pages of the commands above, the nearest first, and those of the other
// programs.
func (m manual) others(path []string) string {
	var all []string
	add := func(name string, section int) { all = append(all, fmt.Sprintf(".BR %s (%d)", escape(name), section)) }
	for n := len(path) - 1; n > 0; n-- {
		add(strings.Join(path[:n], "-"), m.section)
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		if name != path[0] {
			add(name, programs[name])
		}
	}
	return strings.Join(all, ",\n")
}

// prose writes paragraphs. Lines that are indented keep their breaks.
func prose(b *strings.Builder, lines []string) {
	for i := 0; i < len(lines); i++ {
		switch {
		case lines[i] == "":
			b.WriteString(".PP\n")
		case strings.HasPrefix(lines[i], "  "):
			from := i
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "  ") {
				i++
			}
			verbatim(b, lines[from:i+1])
		default:
			b.WriteString(escape(lines[i]) + "\n")
		}
	}
}

// verbatim writes lines as they are, less the indentation that all of them have.
func verbatim(b *strings.Builder, lines []string) {
	least := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
	for _, l := range lines {
		if l != "" {
			least = min(least, len(l)-len(strings.TrimLeft(l, " ")))
		}
	}
	b.WriteString(".RS 2\n.nf\n")
	for _, l := range lines {
		b.WriteString(escape(l[min(least, len(l)):]) + "\n")
	}
	b.WriteString(".fi\n.RE\n")
}

func list(b *strings.Builder, title string, flags []item) {
	if len(flags) == 0 {
		return
	}
	b.WriteString(".SH " + title + "\n")
	for _, f := range flags {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s\n", escape(f.name), escape(f.text))
	}
}

// escape protects what roff would take for its own.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "\\(ga", "'", "\\(aq", "^", "\\(ha", "~", "\\(ti").Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}
