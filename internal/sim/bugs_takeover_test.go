// SPDX-License-Identifier: Apache-2.0

package sim

const sessionTakeover = "internal/session/takeover.go"

// Bugs of sessions that move to another process.
var bugsOfTakeover = []bug{
	{"answers stay behind", "TestTakeover", []edit{
		{sessionTakeover, "for _, k := range s.Cache {", "for _, k := range s.Cache[:0] {"}}},
}
