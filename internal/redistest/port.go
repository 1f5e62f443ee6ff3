package redistest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Ports are taken from below Linux's ephemeral range (32768 and up), bus ports included. From inside that range,
// an outgoing connection could get a killed server's port before its restart, and a client that keeps dialling
// a dead port on the loopback can end up connected to itself.
const (
	minPort   = 10000
	maxPort   = 22000
	busOffset = 10000 // Redis Cluster's bus listens on port + 10000
)

// FreePort returns a port of the loopback that can be listened on. Another process may still get it first.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := freePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// freePort returns a port that can be listened on, as can its bus port. Another process may still get it first.
func freePort(ctx context.Context) (int, error) {
	var err error
	for range 100 {
		port := minPort + rand.IntN(maxPort-minPort)
		if err = canListen(ctx, port); err != nil {
			continue
		}
		if err = canListen(ctx, port+busOffset); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("redistest: no free port: %w", err)
}

func canListen(ctx context.Context, port int) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// dial reports whether something listens on addr.
func dial(ctx context.Context, addr string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
