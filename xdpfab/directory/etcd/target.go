// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// PasswordVariable is the environment variable that has the password of the URL's user.
const PasswordVariable = "XDPFAB_ETCD_PASSWORD"

// target is where a URL leads to.
type target struct {
	name, prefix string
	config       clientv3.Config
}

func parse(text string) (t target, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return t, fmt.Errorf("%w: want etcd://HOST:PORT[,HOST:PORT…][/PREFIX]", err)
	}
	switch _, secret := u.User.Password(); {
	case u.Scheme != "etcd" && u.Scheme != "etcds":
		return t, fmt.Errorf("the scheme is %q: want etcd, or etcds for TLS", u.Scheme)
	case u.Host == "":
		return t, errors.New("no host is given: want etcd://HOST:PORT[,HOST:PORT…][/PREFIX]")
	case secret:
		return t, fmt.Errorf("a password is in the URL, where others can read it: want it in %s", PasswordVariable)
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			return t, fmt.Errorf("%w: want HOST:PORT, such as 10.0.0.1:2379", err)
		}
		t.config.Endpoints = append(t.config.Endpoints, host)
	}
	if u.User != nil {
		t.config.Username, t.config.Password = u.User.Username(), os.Getenv(PasswordVariable)
		if t.config.Password == "" {
			return t, fmt.Errorf("user %s has no password: want it in %s", u.User.Username(), PasswordVariable)
		}
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix == "" {
		prefix = "xdpfab"
	}
	t.name, t.prefix = u.Scheme+"://"+u.Host+"/"+prefix, "/"+prefix+"/nodes/"
	t.config.TLS, err = secured(u)
	return t, err
}

// secured returns the TLS settings of a URL; nil for etcd://.
func secured(u *url.URL) (*tls.Config, error) {
	options := u.Query()
	for key := range options {
		if key != "ca" && key != "cert" && key != "key" {
			return nil, fmt.Errorf("unknown option %q: known are ca, cert and key", key)
		}
	}
	if u.Scheme == "etcd" {
		if len(options) > 0 {
			return nil, errors.New("ca, cert and key are for TLS: want etcds://")
		}
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if path := options.Get("ca"); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s has no certificate: want PEM", path)
		}
	}
	cert, key := options.Get("cert"), options.Get("key")
	if (cert == "") != (key == "") {
		return nil, errors.New("one of cert and key is given: want both, or neither")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cert and key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
