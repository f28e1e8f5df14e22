// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/guest"
)

// borrow opens a domain on a queue of the daemon at path.
func (f *Fabric) borrow(ctx context.Context, ifname, path string, chosen bool, a DomainAttr) (*Domain, error) {
	dev, err := guest.OpenBorrowed(ctx, ifname, path, chosen)
	switch {
	case errors.Is(err, ErrNoDaemon):
		return nil, fmt.Errorf("xdpfab: a queue to borrow: %w: start xdpfabd there with --lend, or borrow none", err)
	case err != nil:
		return nil, fmt.Errorf("xdpfab: a queue to borrow: %w", err)
	}
	return f.adopt(dev, a)
}

// mayLend is true in tests of lent queues, whose domains host guests as daemons do.
var mayLend bool

// checkLoans checks the attributes about lent queues.
func (a *DomainAttr) checkLoans() error {
	switch {
	case a.Borrow && a.ResidentPin != "":
		return fmt.Errorf("xdpfab: resident regions in %s take an interface of the domain's own: want no Borrow with "+
			"ResidentPin", a.ResidentPin)
	case a.Lend < 0:
		return fmt.Errorf("xdpfab: %d queues to lend: want 0 for none, or more", a.Lend)
	case a.Borrow && (a.Attach == AttachNever || a.Lend > 0):
		return errors.New("xdpfab: a queue is borrowed from a daemon: want neither AttachNever nor Lend with Borrow")
	case a.Lend > 0 && !mayLend:
		return errno.Refuse(ErrNotImplemented, "xdpfab: DomainAttr.Lend is %d: want 0, since programs attach to a "+
			"daemon alone: have one lend queues, by xdpfabd --lend", a.Lend)
	}
	return nil
}
