package program

import (
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headcount/internal/config"
)

// Services are built side by side, so they register side by side too.
func TestOnChange(t *testing.T) {
	t.Parallel()
	p, err := Start(config.Options{Program: "test", Args: []string{"--window", "5m"}, Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	const services = 8
	var first, second atomic.Int32
	var building sync.WaitGroup
	for range services {
		building.Go(func() {
			p.OnChange(func(c config.Config) {
				switch c.Window {
				case 5 * time.Minute:
					first.Add(1)
				case 6 * time.Minute:
					second.Add(1)
				}
			})
		})
	}
	building.Wait()
	if got := first.Load(); got != services {
		t.Errorf("%d services were told the configuration in force, want %d", got, services)
	}

	c := p.Config.Config()
	c.Window = 6 * time.Minute
	p.apply(c)
	if got := second.Load(); got != services {
		t.Errorf("%d services were told the new configuration, want %d", got, services)
	}
}
