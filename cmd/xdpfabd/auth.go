// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/xdpfab/xdpfab/internal/trust"
)

// A region can have an authorization key: peers use it only in sessions whose endpoint
// has proven that key. The key is in a file, which the configuration names.

// authKey is a key; as text it is its length alone.
type authKey []byte

func (k authKey) String() string   { return fmt.Sprintf("%d bytes", len(k)) }
func (k authKey) GoString() string { return k.String() }

func checkAuthKey(s string) error {
	if s != "" && !filepath.IsAbs(s) {
		return wants(s, "the absolute path of a file with a key of 16 to 64 bytes")
	}
	return nil
}

// readKey reads the key of a region that has one. Only where no file is there does an
// error give the command that makes one: it would overwrite what is there.
func (r *RegionConfig) readKey() (err error) {
	if r.AuthKey != "" {
		r.auth, err = trust.Key(r.AuthKey)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: name the file with the key, or make one: "+
			"`(umask 077; head -c 32 /dev/urandom | base64 > %s)`", err, r.AuthKey)
	}
	return err
}

// readKeys reads the keys of all regions.
func (c *Config) readKeys() (found []problem) {
	for i := range c.Regions {
		if err := c.Regions[i].readKey(); err != nil {
			found = append(found, problem{key: fmt.Sprintf("region[%d].auth-key", i), text: err.Error()})
		}
	}
	return found
}

// authorize has peers begin sessions with the keys of regions.
func (s *server) authorize(all []*region) error {
	var keys [][]byte
	for _, r := range all {
		if len(r.auth) > 0 {
			keys = append(keys, r.auth)
		}
	}
	return s.host.Node().Authorize(keys)
}

// digest stands for the key between two daemons that both have it: empty for none.
func (k authKey) digest() string {
	if len(k) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte("xdpfabd takeover"))
	return fmt.Sprintf("%x", mac.Sum(nil)[:8])
}
