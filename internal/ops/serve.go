package ops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// Server is one listener of a program and what answers on it.
type Server struct {
	Name    string // for the log: "public", "admin"
	Addr    string // host:port; port 0 takes a free one
	Handler http.Handler

	MaxConnections int                   // open at once; 0: any number
	Registerer     prometheus.Registerer // of the connections that are too many; nil: they are not exported

	// Drain is how long the server still answers after the program was told to stop, when it is not ready any more:
	// whoever sends it requests has time to notice. Each answer ends its connection then.
	Drain time.Duration

	// WriteTimeout is how long an answer may take, from the end of its request's header until the client has it. 0: 60s.
	WriteTimeout time.Duration

	Listening func(net.Addr) // optional: told the address before the first request
}

// DrainTimeout is how long requests that are under way may still take after
// the longest Drain.
const DrainTimeout = 10 * time.Second

// Serve listens on all addresses, serves until ctx ends, and drains: for the
// longest Drain it only is not ready; then requests under way are finished, and
// new ones are not taken. The servers stop in their
// order, so the admin listener, named last, tells of the draining to the end.
func Serve(ctx context.Context, log *zap.Logger, ready *Readiness, servers ...Server) error {
	listeners, err := listen(ctx, servers)
	if err != nil {
		return err
	}
	running, ctx := errgroup.WithContext(ctx)
	https := make([]*http.Server, len(servers))
	for i, s := range servers {
		https[i] = newServer(ready.lastAnswers(s.Handler), log)
		if s.WriteTimeout > 0 {
			https[i].WriteTimeout = s.WriteTimeout
		}
		if s.MaxConnections > 0 {
			capped := newCappedListener(listeners[i], s.MaxConnections, s.Registerer)
			https[i].ConnState, listeners[i] = capped.track, capped
		}
		running.Go(func() error {
			if err := https[i].Serve(listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("%s listener: %w", s.Name, err)
			}
			return nil
		})
		log.Info("listening", zap.String("listener", s.Name), zap.Stringer("addr", listeners[i].Addr()))
		if s.Listening != nil {
			s.Listening(listeners[i].Addr())
		}
	}
	running.Go(func() error {
		<-ctx.Done()
		ready.Drain()
		log.Info("draining: not ready any more", zap.Duration("answering_for", longestDrain(servers)))
		<-time.After(longestDrain(servers))
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTimeout)
		defer cancel()
		for i, s := range servers {
			if err := shutdown(drain, https[i]); err != nil {
				log.Warn("drained with requests still under way: they were cut off", zap.String("listener", s.Name), zap.Error(err))
			}
		}
		return nil
	})
	return running.Wait()
}

// listen takes every address before anything is served: a program with half
// its listeners is not started.
func listen(ctx context.Context, servers []Server) ([]net.Listener, error) {
	var config net.ListenConfig
	listeners := make([]net.Listener, 0, len(servers))
	for _, s := range servers {
		l, err := config.Listen(ctx, "tcp", s.Addr)
		if err != nil {
			for _, taken := range listeners {
				err = errors.Join(err, taken.Close())
			}
			return nil, fmt.Errorf("%s listener: %w", s.Name, err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func longestDrain(servers []Server) (d time.Duration) {
	for _, s := range servers {
		d = max(d, s.Drain)
	}
	return d
}

// shutdown lets requests finish until ctx ends, and cuts off the others.
func shutdown(ctx context.Context, s *http.Server) error {
	if err := s.Shutdown(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// newServer has a limit for everything a client can be slow at.
func newServer(h http.Handler, log *zap.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      60 * time.Second, // a CPU profile takes 30
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    176 << 10, // a lookup of 200 ids of 256 bytes, all escaped
		ErrorLog:          zap.NewStdLog(log.Named("http")),

		DisableGeneralOptionsHandler: true, // or OPTIONS * is answered past the handler
	}
}
