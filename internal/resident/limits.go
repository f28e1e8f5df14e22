// SPDX-License-Identifier: Apache-2.0

package resident

// Limits of what an Executor can hold, and of the frames that it takes.
const (
	MaxSessions = 1 << 14
	MaxRegions  = 1 << 12
	// MaxFrame is the longest frame, in bytes, that a resident session can have.
	MaxFrame = 2048
)
