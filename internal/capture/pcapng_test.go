// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// An independent reader finds in a file what was written to it.
func TestFileIsPcapng(t *testing.T) {
	out := new(bytes.Buffer)
	f, err := NewFile(out, "xdpfab 1", "eth0", 0)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 26, 1, 2, 3, 456_789_012, time.UTC)
	for n := range 5 { // of each length, by its remainder
		p := Packet{Time: at.UnixNano() + int64(n), Length: 100 + n, Queue: n, Sent: n%2 == 1,
			Data: bytes.Repeat([]byte{byte(n)}, 60+n)}
		if err := f.Packet(&p); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Totals(12, 7); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(out, pcapgo.NgReaderOptions{ErrorOnMismatchingLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		data, ci, opts, err := r.ReadPacketDataWithOptions()
		if err != nil || !bytes.Equal(data, bytes.Repeat([]byte{byte(n)}, 60+n)) || ci.Length != 100+n ||
			!ci.Timestamp.Equal(at.Add(time.Duration(n))) {
			t.Fatalf("packet %d: %x, %+v, %v", n, data, ci, err)
		}
		way := []pcapgo.NgEpbFlag{pcapgo.NgEpbFlagDirectionInbound, pcapgo.NgEpbFlagDirectionOutbound}[n%2]
		if opts.Flags == nil || opts.Flags.Direction != way || opts.Queue == nil || *opts.Queue != uint32(n) {
			t.Errorf("packet %d: %+v", n, opts)
		}
	}
	if _, _, err := r.ReadPacketData(); err != io.EOF {
		t.Errorf("behind the last packet: %v", err)
	}
	i, err := r.Interface(0)
	if err != nil || i.Name != "eth0" || i.LinkType != layers.LinkTypeEthernet || i.Statistics.PacketsReceived != 12 ||
		i.Statistics.PacketsDropped != 7 || r.SectionInfo().Application != "xdpfab 1" {
		t.Errorf("interface %+v of %+v, %v", i, r.SectionInfo(), err)
	}
}
