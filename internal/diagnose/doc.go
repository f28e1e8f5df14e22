// SPDX-License-Identifier: Apache-2.0

// Package diagnose finds out why a peer does not answer. It has no part in the life of an
// operation: it looks when an operation has failed, or before the first one.
//
// A [Finding] is the evidence, and its Causes are the conclusions, in the order of their
// likelihood: that is pure. A [Trial] gathers the evidence that costs little, while a
// client waits for an answer. [Run] gathers all of it, step by step, for `xdpfab
// diagnose`.
package diagnose
