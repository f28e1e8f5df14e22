// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"regexp"
	"strings"
	"sync"

	"github.com/xdpfab/xdpfab/test/vm/guest"
)

// trouble matches the beginning of a kernel message about a fault. Only a time
// may precede it: "Spectre V2 : WARNING: …" is advice, not a fault.
var trouble = regexp.MustCompile(
	`^(?:<\d+>)?(?:\[ *\d+\.\d+\](?:\[[^]]*\])? *)?(?:WARNING:|BUG:|Oops|general protection fault|` +
		`Kernel panic|kernel BUG|Out of memory|UBSAN:|KASAN:|divide error|invalid opcode|INFO: task .* blocked|stack segment|double fault)`)

// outOfMemory matches the kernel's message that there is too little memory.
var outOfMemory = regexp.MustCompile(
	`Out of memory|Initramfs unpacking failed|System is deadlocked on memory|invoked oom-killer|incomplete write`)

// warnings returns the lines of a kernel's log that report faults.
func warnings(log string) (found []string) {
	for line := range strings.Lines(log) {
		if line = strings.TrimSpace(line); trouble.MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}

// firstMatch is the first line that matches, "" if none does.
func firstMatch(log string, r *regexp.Regexp) string {
	for line := range strings.Lines(log) {
		if r.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// givenUp returns the last message of the guest's process 1 before it gave up, or
// "" if it did not.
func givenUp(log string) string {
	_, after, ok := strings.Cut(log, guest.Fatal)
	if !ok {
		return ""
	}
	line, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(line)
}

const maxConsole = 1 << 20 // bytes kept, the last ones

// console keeps the output of the guest's serial port.
type console struct {
	mu sync.Mutex
	b  []byte
}

func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.b = append(c.b, b...)
	if extra := len(c.b) - maxConsole; extra > 0 {
		c.b = append(c.b[:0], c.b[extra:]...)
	}
	return len(b), nil
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.ReplaceAll(string(c.b), "\r", "")
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
