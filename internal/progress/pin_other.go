// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package progress

// pinThread leaves the thread where it is: only Linux lets a process choose.
func pinThread(int) {}
