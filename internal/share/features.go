// SPDX-License-Identifier: Apache-2.0

package share

import "slices"

// Features of the conversation and of the rings that version 3 did not have from its
// beginning. A guest may use one if its host has named it. Those that guest and host
// agreed on when the guest attached hold until it ends, also at another host.
const (
	FeatureErrno = "errno" // Reply.Errno
	FeatureText  = "text"  // addresses as texts: see Addr
	FeaturePeers = "peers" // CallPeers
	// memory that only the guest has mapped: Serve.Attends, arrivals of operations,
	// VerbAnswer
	FeatureAttended = "attended"
	// messages and transfers part by part whose length does not fit in Entry.Count:
	// lengthOf
	FeatureLong = "long"
	// operations that wait at the target, which VerbLeave recalls
	FeatureWaits = "waits"
	// functions of the guest that answer calls: Serve.Calls, arrivals of calls, VerbReply
	FeatureCalls = "calls"
)

// Features are those that this release has.
var Features = []string{FeatureErrno, FeatureText, FeaturePeers, FeatureAttended, FeatureLong, FeatureWaits,
	FeatureCalls}

// Agreed returns the features of a list that this release has, too.
func Agreed(others []string) []string {
	return slices.DeleteFunc(slices.Clone(Features), func(f string) bool { return !slices.Contains(others, f) })
}
