// SPDX-License-Identifier: Apache-2.0

// Package feature holds tests alone: one for each feature of the kernel that the
// project uses where it is there. Each first tries, by a system call of its own,
// whether this kernel has the feature, and then uses it through the project's
// code. One that the kernel says it lacks is skipped if the kernel is older than
// the feature, and has failed if it is not.
//
// The tests run on any Linux; package vm makes a table of them for many kernels.
package feature
