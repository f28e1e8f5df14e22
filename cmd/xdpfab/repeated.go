// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// repeated refuses a flag of one value that is given two different ones: the parser would
// take the last. It also refuses a flag whose value is the name of another flag, because
// its own value was forgotten. The parser refuses everything else.
func repeated(root *cobra.Command, args []string) (err error) {
	c, rest, wrong := root.Find(args)
	if wrong != nil {
		return nil
	}
	c.InitDefaultHelpFlag()
	given := map[string]string{}
	_ = c.Flags().ParseAll(rest, func(f *pflag.Flag, value string) error {
		if isFlag(c.Flags(), value) && err == nil {
			err = usage(c, "--%s needs a value, and %s behind it is a flag%s", f.Name, value, valueOf(f))
		}
		if _, many := f.Value.(pflag.SliceValue); many {
			return nil
		}
		if first, again := given[f.Name]; again && first != value && err == nil {
			err = usage(c, "--%s is given twice, with %q and with %q: want one of them", f.Name, first, value)
		}
		given[f.Name] = value
		return nil
	})
	return err
}

// isFlag reports whether a text is a flag of a command.
func isFlag(flags *pflag.FlagSet, text string) bool {
	if name, long := strings.CutPrefix(text, "--"); long {
		name, _, _ = strings.Cut(name, "=")
		return flags.Lookup(name) != nil
	}
	return len(text) == 2 && text[0] == '-' && text != "--" && flags.ShorthandLookup(text[1:]) != nil
}

// valueOf says what a flag's value is: by its type, or else by its help, up to the
// default.
func valueOf(f *pflag.Flag) string {
	if want, known := flagValues[f.Value.Type()]; known {
		return ": want " + want
	}
	_, help := pflag.UnquoteUsage(f)
	help, _, _ = strings.Cut(help, "; default")
	return ": want " + strings.ReplaceAll(help, "\n", " ")
}
