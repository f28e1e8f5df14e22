// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"reflect"
	"strings"
)

// Statistics are what a domain has counted since it was opened. In JSON the names are
// those of Domain.Stats, which xdpfab stat shows too.
type Statistics struct {
	PacketsReceived uint64 `json:"packets_received"`
	PacketsSent     uint64 `json:"packets_sent"`
	// PacketsRefused is how many packets were no frames of the protocol, or damaged;
	// Others has the reasons.
	PacketsRefused uint64 `json:"packets_refused"`
	HandedOver     uint64 `json:"handed_over"` // frames that came on another queue than their session's
	PortErrors     uint64 `json:"port_errors"` // bursts that the kernel refused to send

	// As an initiator, of operations of its own. A record is an operation, or several in
	// one frame that differ in their operands and places alone.
	OpsSent        uint64 `json:"ops_sent"`        // records, when first sent
	FramesResent   uint64 `json:"frames_resent"`   // requests sent again, for want of an answer
	SessionsOpened uint64 `json:"sessions_opened"` // to peers
	SessionsFailed uint64 `json:"sessions_failed"` // of these: by silence, restart or refusal of the peer
	PeersRestarted uint64 `json:"peers_restarted"` // other lives that answered
	PathsNarrow    uint64 `json:"paths_narrow"`    // sessions with short frames, since long ones do not pass

	// As a target, of operations of peers.
	RequestsExecuted   uint64 `json:"requests_executed"`   // frames
	OpsExecuted        uint64 `json:"ops_executed"`        // records in them
	OpsRefused         uint64 `json:"ops_refused"`         // records; Others has the reasons
	LookupsNotFound    uint64 `json:"lookups_not_found"`   // questions about regions that are not there
	Hellos             uint64 `json:"hellos"`              // requests for sessions
	HellosRefused      uint64 `json:"hellos_refused"`      // Others has the reasons
	HellosUnauthorized uint64 `json:"hellos_unauthorized"` // without the authorization key of their endpoint
	SessionsAccepted   uint64 `json:"sessions_accepted"`
	SessionsRetired    uint64 `json:"sessions_retired"` // accepted ones, after long silence
	SessionsEvicted    uint64 `json:"sessions_evicted"` // accepted ones, for want of room
	MessagesStalled    uint64 `json:"messages_stalled"` // whose senders stopped in the middle, which ended their sessions
	UnknownSession     uint64 `json:"unknown_session"`  // frames of sessions that do not exist here
	StaleEpoch         uint64 `json:"stale_epoch"`      // frames of an earlier session of the same number
	Invalid            uint64 `json:"invalid"`          // frames that contradict their session

	// Others has all other statistics by the names of Domain.Stats: reasons of refusals,
	// and the counters of sockets and of the XDP program.
	Others map[string]uint64 `json:"others"`
}

// Statistics returns what the domain has counted, as Domain.Stats does.
func (d *Domain) Statistics() (Statistics, error) {
	if err := d.there(); err != nil {
		return Statistics{}, err
	}
	all, err := d.Stats()
	if err != nil {
		return Statistics{}, err
	}
	return statisticsOf(all), nil
}

// statisticsOf sorts statistics by name into fields.
func statisticsOf(all map[string]uint64) Statistics {
	s := Statistics{Others: map[string]uint64{}}
	fields := map[string]reflect.Value{}
	for f, v := range reflect.ValueOf(&s).Elem().Fields() {
		if v.CanUint() {
			fields[f.Tag.Get("json")] = v
		}
	}
	for name, n := range all {
		if f, is := fields[name]; is {
			f.SetUint(n)
			continue
		}
		s.Others[name] = n
		switch kind, _, _ := strings.Cut(name, "refused_"); {
		case kind == name:
		case kind == "":
			s.PacketsRefused += n
		case kind == "op_":
			s.OpsRefused += n
		case kind == "hello_":
			s.HellosRefused += n
		}
	}
	return s
}
