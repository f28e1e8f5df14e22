// SPDX-License-Identifier: Apache-2.0

// Package matching decides which message goes into which buffer: it has the posted
// receives and the unexpected messages of one receive context (fi_msg(3), fi_tagged(3)).
//
// A receive that is posted takes the oldest unexpected message that it matches; if there
// is none it waits, in posting order. A message that begins takes the oldest posted
// receive that it matches; if there is none it is held, in the order of arrival. So no
// posted receive and no held message ever match, but for a multi-receive that lacks a
// place in the completion queue (see Queue.Freed). Tagged and untagged messages match
// separately.
//
// A message comes in pieces, from one session: an Inflow. The pieces go to where they
// belong as they come, so a receive can take a message whose first pieces alone are
// here. A frame of a session runs record by record, between Begin and End: an Admit and a
// Put for a message that begins, a Put for each further piece. A message that Admit
// refuses waits at its session, and the rest of the frame behind it, until Config.Room
// says that it may be tried again.
//
// The package is pure: it has no clock, starts no goroutine and does no I/O. One mutex
// guards a Queue. It is held for a call, or from Begin to End, that is for the copy of
// one frame, or of one message that was held.
package matching
