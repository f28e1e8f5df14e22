// SPDX-License-Identifier: Apache-2.0

//go:build linux

package topology

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// teamOption begins a step that ip(8) has no command for: it sets an option of team0, as
// teamd does, which is not needed otherwise.
const teamOption = "team "

// teamed makes a team of the cable, which is active, and of another one.
func teamed() []string {
	return append([]string{"link add team0 address MAC type team", teamOption + "mode activebackup", "link set veth0 down",
		"link set spare0 down", "link set veth0 master team0", "link set spare0 master team0", "link set veth0 up",
		teamOption + "activeport veth0"}, moved("team0")...)
}

// From the kernel's uapi/linux/if_team.h.
const (
	teamOptionsSet = 1 // TEAM_CMD_OPTIONS_SET
	teamIfIndex    = 1 // TEAM_ATTR_TEAM_IFINDEX
	teamOptions    = 2 // TEAM_ATTR_LIST_OPTION
	teamItem       = 1 // TEAM_ATTR_ITEM_OPTION
	teamName       = 1 // TEAM_ATTR_OPTION_NAME
	teamType       = 3 // TEAM_ATTR_OPTION_TYPE: one of the kernel's NLA_*
	teamData       = 4 // TEAM_ATTR_OPTION_DATA
	nlaU32         = 3
	nlaString      = 5
)

// teamRequest is struct genlmsghdr of the request.
type teamRequest [nl.SizeofGenlmsg]byte

func (r teamRequest) Len() int          { return len(r) }
func (r teamRequest) Serialize() []byte { return r[:] }

// setTeam carries out a step that begins with teamOption: the value is a port's name for
// activeport, or else text.
func setTeam(t *testing.T, side *testnet.Side, step string) {
	t.Helper()
	name, value, _ := strings.Cut(strings.TrimPrefix(step, teamOption), " ")
	err := side.Do(func() error {
		team, err := net.InterfaceByName("team0")
		if err != nil {
			return err
		}
		kind, data := byte(nlaString), nl.ZeroTerminated(value)
		if name == "activeport" {
			port, err := net.InterfaceByName(value)
			if err != nil {
				return err
			}
			kind, data = nlaU32, nl.Uint32Attr(uint32(port.Index))
		}
		f, err := netlink.GenlFamilyGet("team")
		if err != nil {
			return err
		}
		req := nl.NewNetlinkRequest(int(f.ID), unix.NLM_F_ACK)
		req.AddData(teamRequest{teamOptionsSet, uint8(f.Version)})
		req.AddData(nl.NewRtAttr(teamIfIndex, nl.Uint32Attr(uint32(team.Index))))
		options := nl.NewRtAttr(teamOptions|unix.NLA_F_NESTED, nil)
		item := options.AddRtAttr(teamItem|unix.NLA_F_NESTED, nil)
		item.AddRtAttr(teamName, nl.ZeroTerminated(name))
		item.AddRtAttr(teamType, []byte{kind})
		item.AddRtAttr(teamData, data)
		req.AddData(options)
		// The answer is that of the event that tells of the change, which nobody hears.
		if _, err = req.Execute(unix.NETLINK_GENERIC, 0); errors.Is(err, unix.ESRCH) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", step, err)
	}
}
