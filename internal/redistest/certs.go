package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certs are a certificate authority of a test's own and a certificate that it signed, for servers and clients alike.
type Certs struct {
	CAFile, CertFile, KeyFile string // PEM
}

// NewCerts makes certificates for the given names and addresses, or for that of our servers when there are none. The
// files are gone when the test ends.
func NewCerts(t testing.TB, names ...string) *Certs {
	t.Helper()
	if len(names) == 0 {
		names = []string{host}
	}
	dir := t.TempDir()
	c := &Certs{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}

	ca := certTemplate("redistest CA")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	caKey := newKey(t)
	writePEM(t, c.CAFile, "CERTIFICATE", sign(t, ca, ca, caKey, caKey))

	leaf := certTemplate("redistest")
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	key := newKey(t)
	writePEM(t, c.CertFile, "CERTIFICATE", sign(t, leaf, ca, key, caKey))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	writePEM(t, c.KeyFile, "PRIVATE KEY", der)
	return c
}

// ServerArgs are the options of servers that speak TLS only, also with each other, and ask clients for a certificate:
// for Start, StartCluster and StartSentinel.
func (c *Certs) ServerArgs() []string {
	return []string{
		"--tls-ca-cert-file", c.CAFile,
		"--tls-cert-file", c.CertFile,
		"--tls-key-file", c.KeyFile,
		"--tls-replication", "yes",
		"--tls-cluster", "yes",
	}
}

// clientTLS is what a client of our own needs to reach a server with these options: nil for one without TLS. Tests of
// verification bring a client of theirs.
func clientTLS(args []string) (*tls.Config, error) {
	if option(args, "--tls-cert-file") == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(option(args, "--tls-cert-file"), option(args, "--tls-key-file"))
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true}, nil
}

func certTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return key
}

// sign returns a certificate for key, signed by the parent's key, in DER.
func sign(t testing.TB, cert, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return der
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatalf("redistest: %v", err)
	}
}
