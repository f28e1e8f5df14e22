// SPDX-License-Identifier: Apache-2.0

// Package feature holds only tests: one for each feature of the kernel that the
// project uses where it exists. Each first tries, by a system call of its own,
// whether this kernel has the feature, and then uses it through the project's
// code. If the kernel says that it lacks the feature, the test is skipped on
// kernels older than the feature, and fails on others.
//
// The tests run on any Linux; package vm makes a table of them for many kernels.
package feature
