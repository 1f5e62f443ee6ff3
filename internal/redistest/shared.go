package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// sharedServer is the one server that all tests of a binary may use.
type sharedServer struct {
	once   sync.Once
	server *Server
	err    error
	dir    string
}

var shared sharedServer

// Shared returns the test binary's shared server, started at the first call. Tests keep apart by Prefix, and
// leave the server itself alone: one that kills it, fills it or changes its configuration needs Start.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.once.Do(func() { shared.start(context.WithoutCancel(t.Context())) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

func (s *sharedServer) start(ctx context.Context) {
	// Not the test's own directory: the server outlives the test that happens to ask first.
	if s.dir, s.err = os.MkdirTemp("", "redistest-"); s.err != nil {
		return
	}
	s.server, s.err = newServer(ctx, s.dir, nil)
}

func (s *sharedServer) close() error {
	if s.server != nil {
		s.server.close()
	}
	return os.RemoveAll(s.dir)
}

// sharedMasters is how many masters SharedCluster has.
const sharedMasters = 3

// clusterOfAll is the one cluster that all tests of a binary may use.
type clusterOfAll struct {
	once    sync.Once
	cluster Cluster
	err     error
	dir     string
}

var sharedCluster clusterOfAll

// SharedCluster is Shared for a cluster of three masters.
func SharedCluster(t testing.TB) *Cluster {
	t.Helper()
	s := &sharedCluster
	s.once.Do(func() { s.err = s.start(context.WithoutCancel(t.Context())) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return &s.cluster
}

func (s *clusterOfAll) start(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "redistest-"); err != nil {
		return err
	}
	for i := range sharedMasters {
		dir := filepath.Join(s.dir, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		node, err := newServer(ctx, dir, clusterArgs(nil))
		if err != nil {
			return err
		}
		s.cluster.add(node, true)
	}
	if s.cluster.client, err = s.cluster.newClient(); err != nil {
		return err
	}
	return s.cluster.form(ctx)
}

func (s *clusterOfAll) close() error {
	var err error
	if s.cluster.client != nil {
		err = s.cluster.client.Close()
	}
	for _, node := range s.cluster.nodes() {
		node.close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
