// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package node

// Place is an interface of the machine, which has one network.
type Place struct{ index int }

// Here returns the place of an interface.
func Here(index int) Place { return Place{index} }
