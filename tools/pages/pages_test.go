// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// sample is a command as ours are: a description with examples in it, flags with and
// without values, commands below.
func sample() *cobra.Command {
	c := &cobra.Command{Use: "sample", Long: "sample does it. It has\nrules:\n\n  --rule a-b:'c'\n  .dot\n\nFlags:\nare below.",
		Example: "  sample go --fast\n  sample go", Run: func(*cobra.Command, []string) {}}
	c.Flags().IntP("width", "w", 3, "the `number` of columns")
	c.Flags().Bool("fast", false, "hurry")
	c.PersistentFlags().String("log", "", "where to")
	below := &cobra.Command{Use: "go PLACE", Short: "Go there", Run: func(*cobra.Command, []string) {}}
	below.Flags().Bool("slowly", false, "do not hurry")
	c.AddCommand(below)
	return c
}

func helpOf(t *testing.T, c *cobra.Command, args ...string) help {
	t.Helper()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetArgs(append(args, "--help"))
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	h, err := parse(out.String())
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	return h
}

// What cobra prints is taken apart into what it was made of.
func TestParse(t *testing.T) {
	h := helpOf(t, sample())
	if want := strings.Split(sample().Long, "\n"); !slices.Equal(h.long, want) {
		t.Errorf("description %q, want %q", h.long, want)
	}
	if want := []string{"  sample [flags]", "  sample [command]"}; !slices.Equal(h.usage, want) {
		t.Errorf("usage %q, want %q", h.usage, want)
	}
	if want := strings.Split(sample().Example, "\n"); !slices.Equal(h.examples, want) {
		t.Errorf("examples %q, want %q", h.examples, want)
	}
	if !slices.Contains(h.commands, item{"go", "Go there"}) {
		t.Errorf("commands %q", h.commands)
	}
	for _, want := range []item{{"--fast", "hurry"}, {"-w, --width number", "the number of columns (default 3)"},
		{"--log string", "where to"}} {
		if !slices.Contains(h.flags, want) {
			t.Errorf("flags %q: want %q", h.flags, want)
		}
	}
	below := helpOf(t, sample(), "go")
	if !slices.Contains(below.flags, item{"--slowly", "do not hurry"}) || !slices.Contains(below.global, item{"--log string", "where to"}) {
		t.Errorf("flags %q, global %q", below.flags, below.global)
	}
	const two = "x does it.\n\nUsage:\n  x\n\nFlags:\n      --fast   hurry\n\n" + wayFlags + "\n      --borrow   drive a\n                 queue\n"
	if h, err := parse(two); err != nil || !slices.Equal(h.flags, []item{{"--fast", "hurry"}}) || !slices.Equal(h.way, []item{{"--borrow", "drive a queue"}}) {
		t.Errorf("flags in two parts: %+v, %v", h, err)
	}
	if _, err := parse("no help at all\n"); err == nil {
		t.Error("a text without usage is taken for help")
	}
}

// Nothing of a description is taken for a request of roff, or lost.
func TestPage(t *testing.T) {
	page := manual{section: 1, version: "1.2.3", date: "2026-01-02"}.page([]string{"sample"}, helpOf(t, sample()))
	for _, want := range []string{
		`.TH "SAMPLE" "1" "2026-01-02" "xdpfab 1.2.3"`, ".SH NAME\nsample \\- does it\n", "\n\\&.dot\n", `\-\-rule a\-b:\(aqc\(aq`,
		".BR sample\\-go (1)\nGo there\n", ".TP\n\\fB\\-\\-fast\\fR\nhurry\n", ".nf\nsample go \\-\\-fast\nsample go\n.fi",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	below := helpOf(t, sample(), "go")
	below.short = "Go there"
	page = manual{section: 1}.page([]string{"xdpfab", "sample", "go"}, below)
	for _, want := range []string{".SH NAME\nxdpfab\\-sample\\-go \\- go there\n",
		".SH SEE ALSO\n.BR xdpfab\\-sample (1),\n.BR xdpfab (1),\n.BR xdpfabd (8)\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// Each shell gets a script that asks the program.
func TestComplete(t *testing.T) {
	out := t.TempDir()
	for _, dir := range []string{"bash", "zsh", "fish"} {
		if err := os.Mkdir(filepath.Join(out, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := complete("sample", out); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"bash/sample", "zsh/_sample", "fish/sample.fish"} {
		text, err := os.ReadFile(filepath.Join(out, file))
		if err != nil || !bytes.Contains(text, []byte("__complete")) || !bytes.Contains(text, []byte("sample")) {
			t.Errorf("%s: %v: %.200s", file, err, text)
		}
	}
}
