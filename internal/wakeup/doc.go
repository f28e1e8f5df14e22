// SPDX-License-Identifier: Apache-2.0

// Package wakeup wakes a thread that sleeps until a socket of its can be read, while an
// operation waits for packets: the thread polls an event's descriptor beside the sockets.
package wakeup
