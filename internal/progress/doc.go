// SPDX-License-Identifier: Apache-2.0

// Package progress decides which thread steps an engine. An engine belongs to one thread
// at a time: a [Stepper] hands that right, the turn, from one thread to the next.
//
// With automatic progress a poller of its own has the turn, except while goroutines wait
// for operations: then one of them takes it, because handing a result from core to core
// would cost more than the round trip itself, and the poller keeps off. With manual
// progress there is no poller, and the turn is free unless a goroutine waits or reads.
//
// # The turn
//
//	      take: the poller, or a goroutine that waits or reads
//	      TryHold: a goroutine that posts
//	    +-----------------------------------------+
//	    |                                         v
//	+---+--+                                  +------+
//	| free |<---------------------------------+ held |
//	+---+--+   Release: passes the baton,     +------+
//	    |      if goroutines wait
//	    | Close
//	    v
//	+---------+
//	| retired |   for ever: no thread steps
//	+---------+
//
// # A goroutine that waits
//
//	+---------+                       raised
//	| counted +-------------------------------------------------> leaves
//	+---------+                                                    ^
//	 |  |  ^                                                       |
//	 |  |  |  the baton comes   +--------+  raised, context, Close |
//	 |  |  +--------------------+ parked +-------------------------+
//	 |  | another has the turn  +--------+                         |
//	 |  +---------------------------^                              |
//	 |                          +--------+  raised, context, Close |
//	 +------------------------->| steps  +-------------------------+
//	   takes the turn           +--------+
//
// It counts itself before it tries to take the turn, and a thread that frees the turn
// looks at the count afterwards. So either the goroutine finds the turn free, or the
// other thread sees the goroutine and passes the baton, a message to one of the parked
// goroutines to try the turn again. A goroutine that has the baton when it leaves passes
// it on. Therefore some thread steps as long as a goroutine waits.
//
// # The poller
//
//	steps --- a goroutine waits ---> naps, longer each time, while goroutines wait
//	^ |  ^                            |
//	| |  +----------------------------+ none waits now: at the end of the nap;
//	| |                                 from a deep nap the last to leave rouses it
//	| +--- idle ---> sleeps in the port
//	+----------------+ something happens
//
// The poller says that its nap is deep before it looks once more whether any goroutine
// waits. The last goroutine to leave looks for a deep nap after it has counted itself
// out, and a goroutine that posts looks after it has published. One of the two sees the
// other.
//
// A goroutine in [Stepper.Attend] waits for what peers send, perhaps for days. It has the
// poller's place meanwhile: it steps as the poller would, and the poller naps.
//
// # The end
//
//	open --- Close ---> draining --- idle, or the time is up ---> closed
//
// While the stepper is draining, farewells and last answers leave; posters no longer get
// the turn. Once it is closed, goroutines that wait are released, the thread that has the
// turn lets go, and Close retires it.
//
// # A caller alone
//
// With manual progress and a caller that makes no two calls at a time, nothing above is
// needed: the turn is a plain flag, which tells only a call that the engine itself has
// led to from the others. What another goroutine has to have done, such as closing
// everything when the interface is lost, it leaves with Interrupt.
package progress
