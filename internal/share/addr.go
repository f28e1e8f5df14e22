// SPDX-License-Identifier: Apache-2.0

package share

import (
	"encoding/json"
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Addr is an address in the conversation: a text, which wire.ParseAddr reads, or an
// object with the parts. It is sent as an object that has both, since a host or guest
// without FeatureText takes the parts alone.
type Addr wire.Addr

// MarshalJSON implements json.Marshaler.
func (a Addr) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		MAC      wire.MAC
		IP       netip.Addr
		Endpoint uint16
		Lane     uint8
		Text     string `json:"text"`
	}{a.MAC, a.IP, a.Endpoint, a.Lane, wire.Addr(a).String()})
}

// UnmarshalJSON implements json.Unmarshaler. The text in an object says nothing new.
func (a *Addr) UnmarshalJSON(b []byte) (err error) {
	if b[0] != '"' {
		return json.Unmarshal(b, (*wire.Addr)(a))
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	of, err := wire.ParseAddr(text)
	*a = Addr(of)
	return err
}
