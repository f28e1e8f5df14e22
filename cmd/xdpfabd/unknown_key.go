// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xdpfab/xdpfab/internal/tell"
)

// flagsAlone are the flags that no file has.
var flagsAlone = []string{"config", "check", "takeover", "print-config", "unsteer"}

// meant asks whether an unknown key was meant for a known one, or for a table.
func meant[T any](prefix, key string, options []option[T]) string {
	if strings.HasPrefix(prefix, "guest[") && (key == "allow" || key == "action") {
		return ": a rule allows unless it has deny = true"
	}
	if said := misplaced(prefix, key); said != "" {
		return said
	}
	if prefix != "" {
		return tell.DidYouMean(key, keys(options))
	}
	if slices.Contains(flagsAlone, key) {
		return ": it is a flag alone, --" + key
	}
	name, _ := tell.Closest(key, slices.Concat(arrays, keys(options)))
	if slices.Contains(arrays, name) {
		name = "[[" + name + "]]"
	}
	if name == "" {
		return ""
	}
	return ", did you mean " + name + "?"
}

// misplaced says where a key belongs that stands in a wrong place, or what stands for it
// in this one; empty if nothing is known.
func misplaced(prefix, key string) string {
	switch table, _, _ := strings.Cut(prefix, "["); {
	case table != "" && find(options, key) != nil:
		return fmt.Sprintf(": it is a key of the daemon; want it above the first [[%s]]", table)
	case table == "" && (key == "mode" || key == "group"):
		return fmt.Sprintf(": it is a key of [[socket]]; did you mean socket-%s?", key)
	case table == "" && key == "mtu":
		return ": the MTU is the interface's: `ip link set dev eth0 mtu 9000`"
	case table == "region" && slices.Contains([]string{"read-only", "read_only", "readonly", "ro", "mode"}, key):
		return `, did you mean access, such as access = "read"?`
	case table == "region" && key == "resident":
		return `, did you mean backing = "resident"?`
	}
	return ""
}
