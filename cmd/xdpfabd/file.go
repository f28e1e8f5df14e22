// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/xdpfab/xdpfab/internal/tell"
)

// file is a configuration file that was read: the line of each key, and the problems
// found.
type file struct {
	name  string
	lines map[string]int // line of each key such as "region[1].size", from 1
	found []problem
}

// parseFile applies a TOML file to c. Keys that are not options are errors; each error
// names line and key. All that can be found is reported at once.
func parseFile(name, text string, c *Config) (*file, error) {
	f := &file{name: name}
	tree := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &tree); err != nil {
		return nil, f.syntax(err, text)
	}
	f.lines = tell.Locate(text)
	c.Sockets = tables(f, tree, "socket", socketOptions, defaultSocket)
	c.Guests = tables(f, tree, "guest", guestOptions, defaultGuest)
	c.Regions = tables(f, tree, "region", regionOptions, defaultRegion)
	assign(f, "", tree, options, c)
	return f, f.errors(f.found)
}

// tables takes an array of tables such as [[region]], or one of inline tables, out of a
// file's tree.
func tables[T any](f *file, tree map[string]any, key string, options []option[T], fresh func() T) (all []T) {
	list, ok := tree[key].([]any)
	for i, e := range list {
		table, isTable := e.(map[string]any)
		ok = ok && isTable
		v := fresh()
		assign(f, fmt.Sprintf("%s[%d].", key, i), table, options, &v)
		all = append(all, v)
	}
	if tree[key] != nil && !ok {
		f.add(key, fmt.Sprintf("want tables: begin each %s with a line [[%s]]", key, key))
	}
	delete(tree, key)
	return all
}

// assign sets the options of v to the values of a table.
func assign[T any](f *file, prefix string, table map[string]any, options []option[T], v *T) {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		o := find(options, key)
		if o == nil {
			f.found = append(f.found, problem{prefix + key, "unknown key" + meant(prefix, key, options),
				"; known are " + known(options) + ifTop(prefix)})
			continue
		}
		at := o.at(v)
		text, err := at.shape.text(table[key])
		if err == nil {
			err = at.Set(text)
		} else {
			err = mistyped(at, table[key], err)
		}
		if err != nil {
			f.add(prefix+key, err.Error())
		}
	}
}

func known[T any](options []option[T]) string { return strings.Join(keys(options), ", ") }

func keys[T any](options []option[T]) (all []string) {
	for _, o := range options {
		all = append(all, o.key)
	}
	return all
}

// arrays are the tables that a file may have several of.
var arrays = []string{"region", "guest", "socket"}

// ifTop names the tables, which stand beside the keys that are in none.
func ifTop(prefix string) string {
	if prefix != "" {
		return ""
	}
	return ", and the tables [[" + strings.Join(arrays, "]], [[") + "]]"
}

// text turns a TOML value into the form that fields take.
func (s shape) text(v any) (string, error) {
	switch v := v.(type) {
	case string:
		if s == shapeText || s == shapeNumber {
			return v, nil
		}
	case int64:
		if s == shapeInt || s == shapeNumber {
			return strconv.FormatInt(v, 10), nil
		}
	case bool:
		if s == shapeBool {
			return strconv.FormatBool(v), nil
		}
	case []any:
		if s == shapeInts {
			return joinInts(v)
		}
	}
	return "", fmt.Errorf("%s: want %s", inTOML(v), s.wants())
}

// wants says which TOML values a field takes.
func (s shape) wants() string {
	return [...]string{
		shapeText: "a string in quotes", shapeInt: "an integer", shapeBool: "true or false",
		shapeInts: "an array of integers, e.g. [2, 3]", shapeNumber: "an integer, or a string in quotes",
	}[s]
}

// mistyped explains a value of another TOML type than the field takes: it may be wrong
// apart from that, or lack quotes, or have them.
func mistyped(f field, v any, err error) error {
	_, list := v.([]any)
	_, table := v.(map[string]any)
	_, quoted := v.(string)
	text := fmt.Sprint(v)
	switch number := f.shape == shapeInt || f.shape == shapeBool; {
	case list && f.wants != "":
		return fmt.Errorf("%s: want one of %s, in quotes", inTOML(v), f.wants)
	case list, table, f.shape == shapeInts, number && !quoted:
		return err
	case f.shape == shapeText && f.Set(text) != nil:
		unquoted := strings.Replace(f.Set(text).Error(), strconv.Quote(text), text, 1)
		return fmt.Errorf("%s, in quotes", unquoted)
	case f.Set(text) != nil:
		return f.Set(text)
	case number:
		return fmt.Errorf("%q: want no quotes: %s", text, text)
	}
	return fmt.Errorf("%s: want quotes: %q", text, text)
}

// inTOML is a value as the file may have it.
func inTOML(v any) string {
	list, is := v.([]any)
	if !is {
		if s, text := v.(string); text {
			return strconv.Quote(s)
		}
		return fmt.Sprint(v)
	}
	var parts []string
	for _, e := range list {
		parts = append(parts, inTOML(e))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func joinInts(list []any) (string, error) {
	var parts []string
	for _, e := range list {
		n, ok := e.(int64)
		if !ok {
			return "", fmt.Errorf("%v: want an integer", e)
		}
		parts = append(parts, strconv.FormatInt(n, 10))
	}
	return strings.Join(parts, ","), nil
}

func (f *file) add(key, text string) { f.found = append(f.found, problem{key: key, text: text}) }

// syntax reports an error of TOML syntax, or that a value lacks quotes.
func (f *file) syntax(err error, text string) error {
	if d := new(toml.DecodeError); errors.As(err, &d) {
		line, _ := d.Position()
		if wrong := misquoted(strings.Split(text, "\n")[:line]); wrong != "" {
			return fmt.Errorf("%s:%d: %s", f.name, line, wrong)
		}
	}
	return tell.Syntax(f.name, text, err)
}

// ranges is a line whose array has a range of numbers.
var ranges = regexp.MustCompile(`^\s*([\w-]+)\s*=\s*\[\s*(\d+-\d+)\s*\]`)

// misquoted says what the last of a file's lines has in place of a value, and what the
// line could be; empty if its value may be one.
func misquoted(lines []string) string {
	key, value, is := tell.Bare(lines[len(lines)-1])
	if part := ranges.FindStringSubmatch(lines[len(lines)-1]); part != nil {
		key, value, is = part[1], part[2], true
	}
	if !is {
		return ""
	}
	f := fieldIn(lines, key)
	if err := f.Set(value); err != nil {
		return key + ": " + err.Error()
	}
	if f.shape == shapeInts {
		return fmt.Sprintf("%s: %s: want brackets: %s = [%s]", key, value, key, value)
	}
	return tell.Quotes(key, value).Error()
}

// fieldIn is the field of a key on the last of a file's lines, which belongs to the table
// that began last.
func fieldIn(lines []string, key string) field {
	table := ""
	for _, line := range lines {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "[["); is {
			table, _, _ = strings.Cut(name, "]]")
		}
	}
	switch table {
	case "region":
		return fieldOf(regionOptions, key)
	case "guest":
		return fieldOf(guestOptions, key)
	case "socket":
		return fieldOf(socketOptions, key)
	}
	return fieldOf(options, key)
}

// fieldOf is the field of an option; any text if there is none with that key.
func fieldOf[T any](options []option[T], key string) field {
	if o := find(options, key); o != nil {
		return o.at(new(T))
	}
	return textField(new(string), nil)
}

// errors puts problems into the order of the file and says where they are. f may be nil:
// there is no file.
func (f *file) errors(found []problem) error {
	slices.SortStableFunc(found, func(a, b problem) int { return cmp.Compare(f.line(a.key), f.line(b.key)) })
	var errs []error
	said := map[string]bool{}
	for _, p := range found {
		if !said[p.once] {
			p.text += p.once
		}
		said[p.once] = true
		where := ""
		if n := f.line(p.key); n > 0 {
			where = fmt.Sprintf("%s:%d: ", f.name, n)
		}
		errs = append(errs, errors.New(where+p.key+": "+p.text))
	}
	return errors.Join(errs...)
}

// line returns the line of a key, or else that of something in it, or of the table that
// it is part of; 0 if none is in the file.
func (f *file) line(key string) int {
	if f != nil && f.lines[key+"[0]"] > 0 { // the first of an array of tables
		return f.lines[key+"[0]"]
	}
	for f != nil && key != "" {
		if n := tell.LineIn(f.lines, key); n > 0 {
			return n
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return 0
}

// shift moves the lines of the n elements of an array of tables to higher indexes.
func (f *file) shift(key string, n, by int) {
	if f == nil || by == 0 {
		return
	}
	moved := map[string]int{}
	for k, line := range f.lines {
		for i := range n {
			if rest, is := strings.CutPrefix(k, fmt.Sprintf("%s[%d]", key, i)); is {
				k = fmt.Sprintf("%s[%d]%s", key, i+by, rest)
				break
			}
		}
		moved[k] = line
	}
	f.lines = moved
}

// drop drops the lines of a key and of the keys within it.
func (f *file) drop(key string) {
	if f == nil {
		return
	}
	for k := range f.lines {
		if k == key || strings.HasPrefix(k, key+".") {
			delete(f.lines, k)
		}
	}
}

// print writes the configuration as TOML that parseFile reads as the same.
func (c Config) print(w io.Writer) error {
	c.Control = c.controlPath()
	var errs []error
	errs = append(errs, printOptions(w, options, &c))
	for i := range c.Regions {
		_, err := io.WriteString(w, "\n[[region]]\n")
		errs = append(errs, err, printOptions(w, regionOptions, &c.Regions[i]))
	}
	for i := range c.Sockets {
		_, err := io.WriteString(w, "\n[[socket]]\n")
		errs = append(errs, err, printOptions(w, socketOptions, &c.Sockets[i]))
	}
	for _, g := range c.Guests {
		_, err := io.WriteString(w, "\n[[guest]]\n")
		g = g.effective()
		errs = append(errs, err, printOptions(w, guestOptions, &g))
	}
	return errors.Join(errs...)
}

func printOptions[T any](w io.Writer, options []option[T], v *T) error {
	enc := toml.NewEncoder(w) // for its quoting
	for _, o := range options {
		at := o.at(v)
		text := at.String()
		var err error
		switch at.shape {
		case shapeInt, shapeBool:
			_, err = fmt.Fprintf(w, "%s = %s\n", o.key, text)
		case shapeInts:
			_, err = fmt.Fprintf(w, "%s = [%s]\n", o.key, strings.ReplaceAll(text, ",", ", "))
		case shapeNumber:
			if text == "" || text == "0" { // not set, which has no notation
				continue
			}
			fallthrough
		default:
			err = enc.Encode(map[string]string{o.key: text})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.key, err)
		}
	}
	return nil
}
