// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xsk"
)

// An attribute that is set for a domain replaces that of the fabric; one that is not set
// does not.
func TestAttributesMerge(t *testing.T) {
	ours := DomainAttr{
		Progress: ProgressManual, Queues: 2, Cores: []int{1}, Spin: 1, Copy: CopyForce, XDP: XDPNative, BusyPoll: xsk.BusyPoll{Time: 1}, EthernetOnly: true,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Window: 3, GiveUp: 4, RTOMin: 5, BaseRTT: 6, IdleRetire: 7,
		MRMode: MRProvKey, Threading: ThreadSafe, Context: 1, TrafficClass: TrafficBulkData, AuthKey: AuthKey{1},
		Attach: AttachNever, Control: "ours", Lend: 1, Spread: true, Borrow: true, ResidentSessions: 8,
		ResidentPin: "/ours", ResidentLeave: true, Transport: TransportUDP,
	}
	theirs := DomainAttr{
		Progress: ProgressManual, Queues: 3, Cores: []int{2}, Spin: 11, Copy: ZeroCopyForce, XDP: XDPGeneric, BusyPoll: xsk.BusyPoll{Time: 2}, EthernetOnly: true,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Window: 13, GiveUp: 14, RTOMin: 15, BaseRTT: 16, IdleRetire: 17,
		MRMode: MRVirtAddr, Threading: ThreadDomain, Context: 2, TrafficClass: TrafficScavenger, AuthKey: AuthKey{2},
		Attach: AttachAlways, Control: "theirs", Lend: 2, Spread: true, Borrow: true, ResidentSessions: 18,
		ResidentPin: "/theirs", ResidentLeave: true, Transport: TransportAuto,
	}
	for i, a := 0, reflect.ValueOf(ours); i < a.NumField(); i++ {
		if f := a.Type().Field(i); f.IsExported() && a.Field(i).IsZero() {
			t.Fatalf("this test does not set %s", f.Name)
		}
	}
	if got := ours.with(theirs); !reflect.DeepEqual(got, theirs) {
		t.Errorf("%+v, want %+v", got, theirs)
	}
	if got := ours.with(DomainAttr{}); !reflect.DeepEqual(got, ours) {
		t.Errorf("%+v, want %+v", got, ours)
	}
	want := ours
	want.GiveUp = 14
	if got := ours.with(DomainAttr{GiveUp: 14}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// OpenDomain checks the attributes as they are after that.
func TestOpenDomainMerges(t *testing.T) {
	f, err := NewFabric(DomainAttr{IdleRetire: 2 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for what, attr := range map[string]DomainAttr{"Window of 1000": {Window: 1000}, "nothing0": {Window: 10}} {
		if _, err := f.OpenDomain(context.Background(), "nothing0", attr); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%+v: %v, want something about %s", attr, err, what)
		}
	}
	if _, _, err := Pipe(DomainAttr{}, DomainAttr{}, DomainAttr{}); err == nil {
		t.Error("a pipe with three ends was made")
	}
}
