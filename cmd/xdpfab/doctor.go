// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// doctorReport is the output of doctor.
type doctorReport struct {
	// Row is the row of internal/nic/drivers.json to contribute: nil if nothing was
	// tried.
	Row *nic.Limits `json:"row"`
	// Known is the present row; nil if there is none.
	Known     *nic.Limits    `json:"known"`
	Card      nic.Card       `json:"card"`
	Kernel    string         `json:"kernel"`
	Interface nic.Interface  `json:"interface"`
	Settings  doctorSettings `json:"settings"`
	// Refused lists what the kernel or the driver refused, in its own words, before it
	// gave Probe; Problem is why there is no Probe.
	Refused []string  `json:"refused"`
	Probe   *fi.Probe `json:"probe"`
	Problem string    `json:"problem,omitempty"`
}

// doctorSettings are the settings that drivers' refusals are about.
type doctorSettings struct {
	Offloads     map[string]bool `json:"offloads"`
	RXRing       uint32          `json:"rx_ring"`
	RXRingMax    uint32          `json:"rx_ring_max"`
	ChannelsMost int             `json:"channels_most"`
}

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor INTERFACE",
		Short: "Try what a NIC's driver can do, for the table of drivers",
		Long: `doctor opens an interface for an instant, as info --probe does, and prints one JSON
object. The object has a row for the table of drivers (internal/nic/drivers.json), and
names the card, its firmware, the kernel, the settings, and the driver's refusals in its
own words. doctor needs the same privileges as any other use, and a NIC may lose its
carrier for a second or more. doctor makes no lasting change. Contribute the object if
the table has no row for the driver, or only a row that comes from its source code.

The exit code is 0 if the interface could be opened in some mode.`,
		Example: `  xdpfab doctor eth1
  xdpfab doctor eth1 | jq .row`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(c, "want one INTERFACE: `ip link` lists them")
			}
			return nil
		},
		ValidArgsFunction: completeInterfaces,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := examine(args[0])
			if err != nil {
				return interfaceError(err)
			}
			p, lack := fi.ProbeInterface(c.Context(), args[0])
			lack = hadByDaemon(args[0], lack)
			if lack == nil {
				row := r.Interface.Row(r.Kernel, nic.Seen{XDP: p.XDP, Copy: p.Copy, MTU: p.MTU})
				r.Row, r.Probe, r.Refused = &row, &p, p.Refused
			} else {
				r.Problem = lack.Error()
				lack = interfaceError(fmt.Errorf("%s could not be opened in any mode: %w", args[0], lack))
			}
			return errors.Join(r.print(a.out), lack)
		},
	}
}

// hadByDaemon makes the error of an interface that a daemon has say what to do with it:
// doctor cannot go through a daemon.
func hadByDaemon(ifname string, err error) error {
	pid, sockets := nic.Taker(err)
	if pid == 0 || len(sockets) == 0 {
		return err
	}
	return fmt.Errorf("%w: a daemon, process %d, serves %s, and doctor has to open the interface itself: stop that "+
		"daemon first", xdpfab.ErrBusy, pid, ifname)
}

// examine reads everything that needs no trial.
func examine(ifname string) (r doctorReport, err error) {
	machine, err := nic.Machine()
	if err != nil {
		return r, err
	}
	if r.Interface, err = nic.Inspect(ifname); err != nil {
		return r, err
	}
	r.Kernel, r.Refused = machine.Kernel, []string{}
	r.Card, _ = nic.CardOf(ifname) // a device without a driver's name has an empty one
	if l, known := nic.LimitsOf(r.Interface.Driver); known {
		r.Known = &l
	}
	s := nic.SettingsOf(r.Interface.Index)
	r.Settings = doctorSettings{Offloads: s.Offloads, RXRing: s.RXRing, RXRingMax: s.RXRingMax,
		ChannelsMost: nic.MostChannels(r.Interface.Index)}
	return r, nil
}

func (r *doctorReport) print(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
