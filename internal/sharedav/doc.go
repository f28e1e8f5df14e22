// SPDX-License-Identifier: Apache-2.0

// Package sharedav is the table of addresses that processes share: a named address
// vector (fi_av(3)).
//
// The table is a file in memory of the node (/dev/shm), for one user alone: a head, and
// records of 64 bytes, which are appended and never move, so that a number names the same
// address in every process. Writers exclude each other by a lock on the file; readers
// take none. Nothing is mapped, so a file that somebody cuts off does no harm, and every
// byte is checked when it is read.
//
// Locks are those of open file descriptions (F_OFD_SETLK), which the kernel gives back
// when a process dies. Each user of the table holds one that it shares with the others:
// the user that can have it alone is the last one, and removes the file. So a crash
// leaves at most a file without a holder, which the next one to create the table takes
// over.
package sharedav
