// SPDX-License-Identifier: Apache-2.0

// Package tell has what the commands need to word an error for people. It has no part in
// the life of an operation.
package tell

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// layers are the names of packages with which errors begin on their way up, and of calls
// of Go's library.
var layers = regexp.MustCompile(`(^|[:;] |\n)((xdpfab|port|nic|control|veth|bpf|xsk|mr|wire|route|engine|share|resident|` +
	`toml|strconv\.\w+|netip\.\w+): )+`)

// fields are the names in Go of what a flag sets, which stand in brackets or behind the
// flag. values are those of Go's constants, and what the commands take.
var (
	fields = regexp.MustCompile(`(,| or)( no)? DomainAttr\.\w+| \(DomainAttr\.\w+\)`)
	values = strings.NewReplacer("HugeAuto", "huge=auto", "TransportXDP", "--transport xdp")
)

// doubled are words that repeat those of another layer, or that only a library's caller
// can follow, and what the commands say.
var doubled = []struct {
	at *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`assign values: field \w+: (program \w+: )?(map \w+: )?`), ""},
	{regexp.MustCompile(`(queue \d+): binding to queue \d+ of interface \d+`), "$1"},
	{regexp.MustCompile(`(interface is down): network is down`), "$1"},
	{regexp.MustCompile(`(zero-copy not supported): operation not supported`), "$1"},
	{regexp.MustCompile(`handover: domain on \S+: `), ""},
	{regexp.MustCompile(`DomainAttr\.\w+ \(\w+\) or --`), "--"},
	{regexp.MustCompile(`: (look the region up|have its owner grant it|want Offset and elements)[^:;]*` +
		`(Endpoint\.Lookup|EndpointAttr\.AuthKey)[^:;]*`), ""},
	{regexp.MustCompile(`(the daemon that has the interface has ended);`), "$1: start it again;"},
	{regexp.MustCompile(`dial unix (\S+): `), "$1: "},
	{regexp.MustCompile(`(lookup \S+ on \S+: )(dial|read) \w+ \S+: (\w+: )?`), "$1"},
	{regexp.MustCompile(`; open it again\b`), "; start again"},
	{regexp.MustCompile(`interface can no longer be used: (interface \S+ is gone)`), "$1"},
	{regexp.MustCompile(`(authorization key refused: its endpoint has [^:;]*): want [^:;]*`), "$1"},
	{regexp.MustCompile(`, with Rebind or Lookup\b`), ""},
	{regexp.MustCompile(`: find (its regions again by their names|it again by its name)(;|: watch again)`), "$2"},
	{regexp.MustCompile(`: find its regions again by their names\b`), ": read it before you run the command again"},
	{regexp.MustCompile(`: find it again by its name\b`), ": run the command again"},
	{regexp.MustCompile(`have a program there open it \(Domain\.[^)]*\)`),
		"have a daemon or a program serve it there"},
	{regexp.MustCompile(`has ProgressManual and does not call Progress\b`), "does not make progress"},
	{regexp.MustCompile(`close the domain without ResidentLeave \(xdpfabd: (.*)\), and open it anew`),
		"$1, and start again"},
}

// Lines is an error without the names of packages and of Go's fields, which mean nothing
// to a user. It has a line for each of several errors that were joined.
func Lines(err error) string {
	text := layers.ReplaceAllString(strings.TrimSpace(err.Error()), "$1")
	for _, d := range doubled {
		text = d.at.ReplaceAllString(text, d.by)
	}
	return values.Replace(fields.ReplaceAllString(text, ""))
}

// Plain is Lines in one line.
func Plain(err error) string { return strings.ReplaceAll(Lines(err), "\n", "; ") }

// Closest returns the name that a word may have been meant for.
func Closest(word string, names []string) (string, bool) { return errno.Closest(word, names) }

// DidYouMean is a question to put behind a word that is not among the names, empty if
// none is close to it.
func DidYouMean(word string, names []string) string { return errno.DidYouMean(word, names) }

// LikeFlag asks whether one of a command's flags was meant by an unknown one.
func LikeFlag(flags *pflag.FlagSet, unknown *pflag.NotExistError) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	word := "--" + unknown.GetSpecifiedName()
	cut := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, word) })
	if len(cut) == 1 { // --comp is --compare cut short, and not --copy mistyped
		return DidYouMean(word, cut)
	}
	return DidYouMean(word, names)
}

// List names at most so many of a list, and ends in "…" if there are more.
func List(names []string, most int) string { return errno.List(names, most) }
