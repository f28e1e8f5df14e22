// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"regexp"
	"strings"
)

// help is what cobra prints for --help, taken apart.
type help struct {
	short    string
	long     []string // lines
	usage    []string
	examples []string
	commands []item
	flags    []item
	way      []item // flags that all commands have which reach a peer
	global   []item // flags of the commands above
}

// item is a command or a flag, with its description.
type item struct{ name, text string }

// wayFlags is the heading of flags that all commands have which reach a peer.
const wayFlags = "Flags for the interface, and the way to the peer:"

// headings are those of cobra's template and of ours, in their order.
var headings = []string{"Usage:", "Aliases:", "Examples:", "Available Commands:", "Flags:", wayFlags, "Global Flags:",
	"Additional help topics:"}

// parse takes the text apart. The first heading ends the description, which may have lines
// that look like the headings that follow "Usage:".
func parse(text string) (h help, err error) {
	sections := map[string][]string{}
	at := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if next := heading(line, at); next != "" {
			at = next
			continue
		}
		if strings.HasPrefix(line, `Use "`) && at != "" {
			break // "… [command] --help" for more
		}
		sections[at] = append(sections[at], line)
	}
	if at == "" {
		return h, errors.New(`no line "Usage:"`)
	}
	h.long, h.usage, h.examples = trim(sections[""]), trim(sections["Usage:"]), trim(sections["Examples:"])
	h.commands, h.flags = items(sections["Available Commands:"]), items(sections["Flags:"])
	h.way = items(sections[wayFlags])
	h.global = items(sections["Global Flags:"])
	return h, nil
}

// heading returns the heading that a line is, if it can follow another one.
func heading(line, after string) string {
	passed := after == ""
	for _, h := range headings {
		if passed && h == line && (after != "" || h == "Usage:") {
			return h
		}
		passed = passed || h == after
	}
	return ""
}

// trim drops empty lines at both ends.
func trim(lines []string) []string {
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// entry is a line of a command or a flag: its name, two spaces or more, what it is.
var entry = regexp.MustCompile(`^ +((?:-\w, )?\S+(?: \S+)*)(?:  +(.*))?$`)

// items reads commands or flags. A line that begins neither continues the one before.
func items(lines []string) (all []item) {
	for _, line := range trim(lines) {
		m := entry.FindStringSubmatch(line)
		deep := len(line) - len(strings.TrimLeft(line, " "))
		if m == nil {
			continue
		}
		if deep > 6 && len(all) > 0 {
			all[len(all)-1].text += " " + strings.TrimSpace(line)
			continue
		}
		all = append(all, item{m[1], m[2]})
	}
	return all
}
