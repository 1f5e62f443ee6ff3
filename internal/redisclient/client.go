// Package redisclient connects to Redis, single, behind Sentinel or as a
// Cluster, with the options that a counting service needs: every command has a
// deadline, and a Redis that is gone is noticed at once.
package redisclient

import (
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Modes of Options.Mode.
const (
	Single   = "single"
	Sentinel = "sentinel"
	Cluster  = "cluster"
)

// Options say where Redis is.
type Options struct {
	Mode       string   // Single, Sentinel or Cluster
	Addrs      []string // host:port: of the server, of the sentinels, or of some cluster nodes
	MasterName string   // Sentinel only: which master
	Username   string
	Password   string
	DB         int           // not with Cluster
	TLS        *tls.Config   // of every connection, to sentinels as well; nil: not encrypted
	Timeout    time.Duration // of a dial, a write and a read, each
}

// retries is how often a command is sent again after a network error: once for
// a pooled connection that had died unnoticed, once more for a server that is
// just back. Everything we send may be repeated without harm.
const retries = 2

// clusterReload is how soon a client learns that a replica has taken a dead
// master's slots. A connection refused does not make the library look, and by
// itself it looks once a minute.
const clusterReload = 2 * time.Second

// New returns a client. It does not connect: a Redis that is down now may be
// back for the first command.
func New(o Options) (redis.UniversalClient, error) {
	quietLibrary()
	u := o.universal()
	switch o.Mode {
	case Single:
		return redis.NewClient(u.Simple()), nil
	case Sentinel:
		return redis.NewFailoverClient(u.Failover()), nil
	case Cluster:
		c := u.Cluster()
		c.ClusterStateReloadInterval = clusterReload
		return redis.NewClusterClient(c), nil
	}
	return nil, fmt.Errorf("redis.mode %q is none of %s, %s, %s", o.Mode, Single, Sentinel, Cluster)
}

func (o Options) universal() *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs:      o.Addrs,
		MasterName: o.MasterName,
		Username:   o.Username,
		Password:   o.Password,
		DB:         o.DB,
		TLSConfig:  o.TLS,
		Protocol:   2, // its flat answers are cheaper to make and to read than version 3's maps

		DialTimeout:           o.Timeout,
		ReadTimeout:           o.Timeout,
		WriteTimeout:          o.Timeout,
		PoolTimeout:           o.Timeout,
		ContextTimeoutEnabled: true, // or a caller's deadline is ignored once a command is under way
		DialerRetries:         1,    // or a dead server takes seconds to notice
		MaxRetries:            retries,
		MinRetryBackoff:       8 * time.Millisecond,
		MaxRetryBackoff:       64 * time.Millisecond,

		// Both are commands that an older server answers with an error on
		// every new connection, which then stands in its statistics.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// quietLibrary turns go-redis's own logger off, once: it is global to the
// process, writes unstructured lines to stderr, and every error that it
// mentions is returned to us as well.
var quietLibrary = sync.OnceFunc(func() { redis.SetLogger(&logging.VoidLogger{}) })
