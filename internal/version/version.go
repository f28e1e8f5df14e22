// SPDX-License-Identifier: Apache-2.0

// Package version says which build of xdpfab a program is. It takes no part in
// the life of an operation; the commands print it and the daemon reports it.
package version

import "runtime/debug"

// number is the release that the tree is on the way to, in the form of
// semver.org.
const number = "0.1.0-dev"

// revisionLen is how many digits of a commit are shown: what git shows by
// default in a large repository.
const revisionLen = 12

// Version is the number and, as semver build metadata, the commit that the
// program was built from: "0.1.0-dev+38d5491e2c0f", with ".dirty" when the tree
// had changes. Tests and builds outside a checkout have no commit.
var Version = describe(debug.ReadBuildInfo())

func describe(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return number
	}
	setting := map[string]string{}
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	revision := setting["vcs.revision"]
	if revision == "" {
		return number
	}
	v := number + "+" + revision[:min(revisionLen, len(revision))]
	if setting["vcs.modified"] == "true" {
		v += ".dirty"
	}
	return v
}
