package redisclient

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLSFiles are PEM files for encrypted connections. Each may be empty.
type TLSFiles struct {
	CA        string // who signed the servers' certificates; empty: somebody the system trusts
	Cert, Key string // our own certificate, for servers that ask for one
}

// Config returns the configuration of connections by TLS 1.2 or newer. The servers' certificates are always verified,
// against the host that is dialled: one of Options.Addrs, or what a sentinel or the cluster told. Errors name the key
// of the configuration and the file.
func (f TLSFiles) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("redis.tls_ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("redis.tls_ca_file: no PEM certificate in %s", f.CA)
		}
	}
	if f.Cert != "" {
		if _, err := f.own(nil); err != nil {
			return nil, err
		}
		c.GetClientCertificate = f.own
	}
	return c, nil
}

// own reads our certificate: for every connection, so that a renewed one is in use without a restart.
func (f TLSFiles) own(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("redis.tls_cert_file %s, redis.tls_key_file %s: %w", f.Cert, f.Key, err)
	}
	return &cert, nil
}
