// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// commandUse matches the definition of a command of cobra, and its name.
	commandUse = regexp.MustCompile(`Use:\s+"([a-z]+)`)

	// commandLine matches a line of a page that runs one of the two programs, in a block
	// or between backquotes; oneFlag matches a long flag on it.
	commandLine = regexp.MustCompile("(?m)^    (?:sudo )?(?:bin/)?((?:xdpfabd?) [^:].*)$|`(?:sudo )?(xdpfabd? [^`]+)`")
	oneFlag     = regexp.MustCompile(`--([a-z][a-z-]+)`)
)

// docs/commands.md has every command of the client. The pages name no command, and no
// flag, that the programs do not have.
func TestCommandsInDocs(t *testing.T) {
	root := filepath.Join("..", "..")
	commands, code := map[string]bool{"completion": true, "help": true}, ""
	sources(t, func(dir, path string, src []byte) {
		if strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(dir, "cmd/xdpfab") {
			return
		}
		code += string(src)
		if strings.HasPrefix(dir, "cmd/xdpfab") && dir != "cmd/xdpfabd" {
			for _, m := range commandUse.FindAllStringSubmatch(string(src), -1) {
				commands[m[1]] = true
			}
		}
	})
	if len(commands) < 20 {
		t.Fatalf("only %d commands found", len(commands))
	}
	list, err := os.ReadFile(filepath.Join(root, "docs", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range commands {
		switch name {
		case "xdpfab", "help", "work": // the program itself, and a hidden command
			continue
		}
		if !regexp.MustCompile("`xdpfab ([a-z]+ )?" + name + "\\b|, `" + name + "`").Match(list) {
			t.Errorf("docs/commands.md does not have the command %s", name)
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range commandLine.FindAllStringSubmatch(string(text), -1) {
			line, _, _ := strings.Cut(m[1]+m[2], " #")
			words := strings.Fields(line)
			lines++
			if name := strings.TrimRight(words[1], ",;"); words[0] == "xdpfab" && regexp.MustCompile(`^[a-z]+$`).MatchString(name) && !commands[name] {
				t.Errorf("%s: %q: there is no such command", filepath.Base(page), line)
			}
			for _, f := range oneFlag.FindAllStringSubmatch(line, -1) {
				switch f[1] {
				case "help", "version": // of cobra
					continue
				}
				if !strings.Contains(code, `"`+f[1]+`"`) {
					t.Errorf("%s: %q: there is no flag --%s", filepath.Base(page), line, f[1])
				}
			}
		}
	}
	if lines < 150 {
		t.Errorf("only %d lines looked at", lines)
	}
}
