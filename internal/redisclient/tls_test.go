package redisclient_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headcount/internal/redisclient"
	"headcount/internal/redistest"
)

// trusting is TLS that these certificates' servers accept.
func trusting(t *testing.T, c *redistest.Certs) *tls.Config {
	t.Helper()
	return encrypted(t, redisclient.TLSFiles{CA: c.CAFile, Cert: c.CertFile, Key: c.KeyFile})
}

func encrypted(t *testing.T, f redisclient.TLSFiles) *tls.Config {
	t.Helper()
	c, err := f.Config()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTLSSingle(t *testing.T) {
	t.Parallel()
	certs := redistest.NewCerts(t)
	o := single(redistest.Start(t, certs.ServerArgs()...))
	o.TLS = trusting(t, certs)
	setAndGet(t, connect(t, o), "k")
}

func TestTLSSentinel(t *testing.T) {
	t.Parallel()
	certs := redistest.NewCerts(t)
	s := redistest.StartSentinel(t, certs.ServerArgs()...)
	rdb := connect(t, redisclient.Options{Mode: redisclient.Sentinel, Addrs: s.Addrs(), MasterName: s.MasterName, TLS: trusting(t, certs)})
	setAndGet(t, rdb, "k")
	s.Failover(t)
	eventually(t, "a write after the failover", func() error { return rdb.Set(t.Context(), "after", "v", 0).Err() })
}

func TestTLSCluster(t *testing.T) {
	t.Parallel()
	certs := redistest.NewCerts(t)
	c := redistest.StartCluster(t, 3, 0, certs.ServerArgs()...)
	rdb := connect(t, redisclient.Options{Mode: redisclient.Cluster, Addrs: c.Addrs()[:1], TLS: trusting(t, certs)})
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		setAndGet(t, rdb, key)
	}
	if masters, err := redisclient.Masters(t.Context(), rdb); len(masters) != 3 || err != nil {
		t.Errorf("Masters = %d, %v, want 3", len(masters), err)
	}
}

func TestTLSVerifiesTheServer(t *testing.T) {
	t.Parallel()
	certs, elsewhere := redistest.NewCerts(t), redistest.NewCerts(t, "redis.example.org")
	server, misnamed := redistest.Start(t, certs.ServerArgs()...), redistest.Start(t, elsewhere.ServerArgs()...)
	unknown := encrypted(t, redisclient.TLSFiles{Cert: certs.CertFile, Key: certs.KeyFile})

	var hostname x509.HostnameError
	var authority x509.UnknownAuthorityError
	for _, test := range []struct {
		name   string
		server *redistest.Server
		tls    *tls.Config
		want   any
	}{
		{"another host's certificate", misnamed, trusting(t, elsewhere), &hostname},
		{"signed by another authority", server, trusting(t, elsewhere), &authority},
		{"signed by nobody the system trusts", server, unknown, &authority},
	} {
		o := single(test.server)
		o.TLS = test.tls
		if err := connect(t, o).Ping(t.Context()).Err(); !errors.As(err, test.want) {
			t.Errorf("%s: PING = %v, want %T", test.name, err, test.want)
		}
	}
}

func TestTLSNeedsOurCertificateWhereRedisAsks(t *testing.T) {
	t.Parallel()
	certs, foreign := redistest.NewCerts(t), redistest.NewCerts(t)
	asking := redistest.Start(t, certs.ServerArgs()...) // which is Redis's default
	content := redistest.Start(t, append(certs.ServerArgs(), "--tls-auth-clients", "no")...)
	none := encrypted(t, redisclient.TLSFiles{CA: certs.CAFile})
	wrong := encrypted(t, redisclient.TLSFiles{CA: certs.CAFile, Cert: foreign.CertFile, Key: foreign.KeyFile})

	for name, offered := range map[string]*tls.Config{"none": none, "another authority's": wrong} {
		o := single(asking)
		o.TLS = offered
		if err := connect(t, o).Ping(t.Context()).Err(); err == nil {
			t.Errorf("PING with a certificate of %s: no error", name)
		}
	}
	o := single(content)
	o.TLS = none
	setAndGet(t, connect(t, o), "k")
}

func TestTLSUsesARenewedCertificate(t *testing.T) {
	t.Parallel()
	certs, old := redistest.NewCerts(t), redistest.NewCerts(t) // the server does not trust the old one any more
	o := single(redistest.Start(t, certs.ServerArgs()...))
	o.TLS = encrypted(t, redisclient.TLSFiles{CA: certs.CAFile, Cert: old.CertFile, Key: old.KeyFile})
	rdb := connect(t, o)
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Fatal("PING with the old certificate: no error")
	}
	for from, to := range map[string]string{certs.CertFile: old.CertFile, certs.KeyFile: old.KeyFile} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	setAndGet(t, rdb, "k")
}

func TestTLSRefusesOldVersions(t *testing.T) {
	t.Parallel()
	certs := redistest.NewCerts(t)
	cert, err := tls.LoadX509KeyPair(certs.CertFile, certs.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	old := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", old)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).HandshakeContext(t.Context()) // the client's error is what counts
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-ended })

	o := redisclient.Options{Mode: redisclient.Single, Addrs: []string{listener.Addr().String()}, TLS: trusting(t, certs), Timeout: time.Second}
	if err := connect(t, o).Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("PING by TLS 1.1 = %v, want that its version is refused", err)
	}
}

func TestTLSFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	certs, other := redistest.NewCerts(t), redistest.NewCerts(t)
	absent := filepath.Join(t.TempDir(), "absent.pem")
	for name, test := range map[string]struct {
		files redisclient.TLSFiles
		want  []string
	}{
		"no CA file":      {redisclient.TLSFiles{CA: absent}, []string{"redis.tls_ca_file: ", absent, "no such file"}},
		"no CA in it":     {redisclient.TLSFiles{CA: certs.KeyFile}, []string{"redis.tls_ca_file: ", certs.KeyFile, "no PEM certificate"}},
		"no certificate":  {redisclient.TLSFiles{Cert: absent, Key: certs.KeyFile}, []string{"redis.tls_cert_file ", absent, "no such file"}},
		"no key":          {redisclient.TLSFiles{Cert: certs.CertFile, Key: absent}, []string{"redis.tls_key_file ", absent, "no such file"}},
		"key of another":  {redisclient.TLSFiles{Cert: certs.CertFile, Key: other.KeyFile}, []string{"redis.tls_key_file ", other.KeyFile, "does not match"}},
		"not PEM but key": {redisclient.TLSFiles{Cert: certs.KeyFile, Key: certs.KeyFile}, []string{"redis.tls_cert_file ", certs.KeyFile}},
	} {
		_, err := test.files.Config()
		if err == nil {
			t.Errorf("%s: Config succeeded", name)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: Config = %q, want it to say %q", name, err, want)
			}
		}
	}
}
