package redisclient

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS says whether and how connections are encrypted. The servers' certificates are always verified, against the host
// that was dialled: one of Options.Addrs, or what a sentinel or the cluster told.
type TLS struct {
	On       bool
	CAFile   string // PEM: who signed the servers' certificates; "": somebody the system trusts
	CertFile string // PEM: our own certificate, for servers that ask for one; "": none
	KeyFile  string // PEM: its key
}

// config returns nil when connections are not encrypted. Errors name the key of the configuration and the file.
func (t TLS) config() (*tls.Config, error) {
	if !t.On {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("redis.tls_ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("redis.tls_ca_file: no PEM certificate in %s", t.CAFile)
		}
	}
	if t.CertFile != "" {
		if _, err := t.own(nil); err != nil {
			return nil, err
		}
		c.GetClientCertificate = t.own
	}
	return c, nil
}

// own reads our certificate: for every connection, so that a renewed one is in use without a restart.
func (t TLS) own(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("redis.tls_cert_file %s, redis.tls_key_file %s: %w", t.CertFile, t.KeyFile, err)
	}
	return &cert, nil
}
