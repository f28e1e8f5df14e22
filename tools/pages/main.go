// SPDX-License-Identifier: Apache-2.0

// Command pages writes the manual pages of the programs, and what completes their command
// lines in bash, zsh and fish. It asks the programs themselves, by --help, so that they need
// neither this code nor its dependencies.
//
//	pages BIN OUT     reads BIN/xdpfab and BIN/xdpfabd, writes OUT/man, bash, zsh, fish
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// programs are those that have pages, by the section of the manual.
var programs = map[string]int{"xdpfab": 1, "xdpfabd": 8}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pages BIN OUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

func run(bin, out string) error {
	for _, dir := range []string{"man", "bash", "zsh", "fish"} {
		// Pages of commands that are no more would stay otherwise.
		at := filepath.Join(out, dir)
		if err := errors.Join(os.RemoveAll(at), os.MkdirAll(at, 0o755)); err != nil {
			return err
		}
	}
	for name, section := range programs {
		if err := complete(name, out); err != nil {
			return err
		}
		program := filepath.Join(bin, name)
		version, err := exec.Command(program, "--version").Output()
		if err != nil {
			return fmt.Errorf("%s --version: %w", program, err)
		}
		first, _, _ := strings.Cut(string(version), "\n")
		fields := strings.Fields(first)
		m := manual{section: section, version: fields[len(fields)-1], date: date()}
		if err := m.walk(program, []string{name}, "", filepath.Join(out, "man")); err != nil {
			return err
		}
	}
	return nil
}

// date is the date of the build, or the date that a reproducible build sets.
func date() string {
	var seconds int64
	if _, err := fmt.Sscan(os.Getenv("SOURCE_DATE_EPOCH"), &seconds); err == nil {
		return time.Unix(seconds, 0).UTC().Format("2006-01-02")
	}
	return time.Now().UTC().Format("2006-01-02")
}

// complete writes the scripts of the shells. They hold nothing of a program but its name,
// and ask it when they run.
func complete(name, out string) error {
	c := &cobra.Command{Use: name}
	return errors.Join(
		c.GenBashCompletionFileV2(filepath.Join(out, "bash", name), true),
		c.GenZshCompletionFile(filepath.Join(out, "zsh", "_"+name)),
		c.GenFishCompletionFile(filepath.Join(out, "fish", name+".fish"), true),
	)
}

// walk writes the page of a command, and those of the commands below it.
func (m manual) walk(program string, path []string, short, out string) error {
	ask := func(flag string) ([]byte, error) {
		return exec.Command(program, append(path[1:len(path):len(path)], flag)...).Output()
	}
	text, err := ask("--help")
	if err == nil && bytes.Contains(text, []byte("--help-all")) { // that help is brief
		text, err = ask("--help-all")
	}
	if err != nil {
		return fmt.Errorf("%s --help: %w", strings.Join(path, " "), err)
	}
	h, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("%s --help: %w", strings.Join(path, " "), err)
	}
	h.short = short
	file := filepath.Join(out, fmt.Sprintf("%s.%d", strings.Join(path, "-"), m.section))
	if err := os.WriteFile(file, []byte(m.page(path, h)), 0o644); err != nil {
		return err
	}
	for _, c := range h.commands {
		if c.name == "help" || c.name == "completion" {
			continue
		}
		if err := m.walk(program, append(path[:len(path):len(path)], c.name), c.text, out); err != nil {
			return err
		}
	}
	return nil
}
