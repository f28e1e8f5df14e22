// SPDX-License-Identifier: Apache-2.0

package errno

import (
	"context"
	"errors"
	"syscall"
)

// Numbers of Linux that other systems lack; libfabric has the first on all of them.
const (
	KeyRejected = syscall.Errno(129) // EKEYREJECTED
	NoKey       = syscall.Errno(126) // ENOKEY
)

// The causes that a node, its guests and its host share. The public packages export them
// under the same names with Err before, and say there what each means.
var (
	Busy           = cause("in use", syscall.EBUSY)
	Closed         = cause("closed", syscall.EBADF)
	NotImplemented = cause("not implemented by this provider", syscall.ENOSYS)
	InterfaceLost  = cause("interface can no longer be used", syscall.ENETDOWN)
	AuthKey        = cause("authorization key refused", KeyRejected)
	Denied         = cause("the rules of the daemon that has the interface do not allow it", syscall.EPERM)
	HostLost       = cause("the daemon that has the interface has ended", syscall.ECONNRESET)
	NoInterface    = uncoded("no such interface")
	NoDaemon       = uncoded("no daemon serves the interface")
	NotKept        = cause("no region of this name is kept", syscall.ENOENT)
	Access         = cause("the memory region does not grant this right", syscall.EACCES)
	PeerSilent     = cause("peer does not answer", syscall.ETIMEDOUT)
	Protocol       = cause("peer violated the protocol", syscall.EPROTO)
	Count          = cause("impossible number of elements", syscall.EINVAL)
	Length         = cause("buffer length does not match the element count", syscall.EINVAL)
	CMData         = cause("more bytes than go with a request for a connection", syscall.EINVAL)
	Connected      = cause("an endpoint is connected once in its life", syscall.EISCONN)
	Argument       = cause("impossible argument", syscall.EINVAL)
	OutOfBounds    = cause("beyond the end of the memory region", syscall.EINVAL)
	Misaligned     = cause("address is not a multiple of the element's alignment", syscall.EINVAL)
	Foreign        = cause("belongs to another domain", 262) // FI_EDOMAIN, which no system has
)

// NotExecuted is the certainty of an operation that never ran and never will.
var NotExecuted = uncoded("not executed")

// Unsent returns the error of an operation that was refused before anything was sent.
// errors.Is finds NotExecuted in it; its text stays as it is, and may end with a remedy.
func Unsent(err error) error { return Also(err, NotExecuted) }

// NoContext returns an error if there is no context.
func NoContext(ctx context.Context) error {
	if ctx != nil {
		return nil
	}
	return Unsent(Refuse(Argument, "xdpfab: the context is nil: want one, such as context.Background()"))
}

// uncoded is a cause that has no number of libfabric or the system.
func uncoded(text string) error { return errors.New(text) }
