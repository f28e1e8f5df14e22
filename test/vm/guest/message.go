// SPDX-License-Identifier: Apache-2.0

// Package guest defines the messages between host and guest of a test machine,
// and is the guest's half of the conversation.
//
// They exchange JSON, one object per line, over a virtio-serial port: the host
// sends [Request], the guest answers with any number of [Reply], the last of
// which has Done set. Replies with ID 0 answer nothing: the first says that the
// guest is up, the others that it still is.
package guest

import "time"

// PortName is the virtio-serial port's, which the guest looks for.
const PortName = "xdpfab.vmtest"

// ConfigPath is where the guest finds its Config in the initramfs.
const ConfigPath = "/etc/vminit.json"

// Fatal begins the console line with which the guest gives up before it can use
// the port.
const Fatal = "vminit: fatal: "

// Config is the guest's part of the image.
type Config struct {
	Modules []string // paths of kernel modules, in the order to load them
	// Physical are interfaces, each of which is to have a virtual function (SR-IOV), in
	// this order, when the modules are loaded.
	Physical []string
	// System is a program, systemd for example, that becomes process 1 when the modules
	// are loaded. It has to start ServeCommand.
	System string `json:",omitempty"`
}

// ServeCommand starts the guest's half of the conversation where System is process 1.
const ServeCommand = "/init serve"

// Request asks the guest for one thing.
type Request struct {
	ID     int // greater than 0, and new
	Run    *Command
	Signal int // for the command that request Of started
	Of     int
	Census bool // Reply.Census
	Dmesg  bool // Reply.Out is the kernel's log
}

// Command is a program to run.
type Command struct {
	Args []string // the path first
	Env  []string // added to the guest's own: "name=value"
	Dir  string   // "" means /
	// Limit is the number of seconds after which the command is asked for its
	// stacks (SIGQUIT), and a little later killed; 0 means never.
	Limit int
}

// Reply is a part of the answer to a request.
type Reply struct {
	ID     int
	Hello  *Hello   `json:",omitempty"`
	Beat   bool     `json:",omitempty"`
	Out    []byte   `json:",omitempty"` // of the command, standard output
	Err    []byte   `json:",omitempty"` // and standard error
	Census []string `json:",omitempty"`
	Done   *Done    `json:",omitempty"`
}

// Hello is the guest's first word.
type Hello struct {
	Release string // of the kernel
	CPUs    int
	Memory  int64 // free memory, bytes
}

// Done ends an answer.
type Done struct {
	Code  int    // exit code; 128 and the signal's number if one ended it
	Error string // why the request could not be carried out; "" if it was

	Took time.Duration // by the guest's clock
}
