// SPDX-License-Identifier: Apache-2.0

package share

import (
	"encoding/json"
	"errors"
	"net/netip"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// An address is read as a text, as the object that older guests send, and as it is sent.
func TestAddrInTheConversation(t *testing.T) {
	mac := wire.Addr{MAC: wire.MAC{2, 0, 0, 0, 0, 0x0b}, Endpoint: 3, Lane: 1}
	for text, want := range map[string]wire.Addr{
		`"02:00:00:00:00:0b/1.3"`: mac,
		`"10.0.0.2/3"`:            {IP: netip.MustParseAddr("10.0.0.2"), Endpoint: 3},
		`"fe80::1"`:               {IP: netip.MustParseAddr("fe80::1")},
		`{"MAC":[2,0,0,0,0,11],"IP":"","Endpoint":3,"Lane":1}`: mac,
		`{"MAC":[0,0,0,0,0,0],"IP":"10.0.0.2"}`:                {IP: netip.MustParseAddr("10.0.0.2")},
	} {
		var a Addr
		if err := json.Unmarshal([]byte(text), &a); err != nil || wire.Addr(a) != want {
			t.Errorf("%s: %v, %v; want %v", text, wire.Addr(a), err, want)
		}
	}
	const both = `{"MAC":[2,0,0,0,0,11],"IP":"","Endpoint":3,"Lane":1,"text":"02:00:00:00:00:0b/1.3"}`
	sent, err := json.Marshal(Addr(mac))
	if err != nil || string(sent) != both {
		t.Errorf("sent as %s, %v; want %s", sent, err, both)
	}
	var a Addr
	var older wire.Addr // of a host or guest that knows the parts alone
	if err := errors.Join(json.Unmarshal(sent, &a), json.Unmarshal(sent, &older)); err != nil || wire.Addr(a) != mac || older != mac {
		t.Errorf("read as %v and %v, %v", wire.Addr(a), older, err)
	}
	for _, bad := range []string{`"10.0.0"`, `"10.0.0.2/99999"`, `"[fe80::1]/3"`, `""`} {
		if err := json.Unmarshal([]byte(bad), &a); !errors.Is(err, wire.ErrAddr) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, bad := range []string{`7`, `[]`, `{"MAC":"02:00:00:00:00:0b"}`} {
		if json.Unmarshal([]byte(bad), &a) == nil {
			t.Errorf("%s is read as %v", bad, wire.Addr(a))
		}
	}
}
