package chaos

import (
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// moment is when a fault comes to a program that reaches Redis through a proxy of its own.
type moment struct {
	command string // the program has just sent it, and Redis not got it yet; "": at any time
	lost    bool   // Redis never gets it
}

// pickMoment is one of those after the commands, or any time. Over several rounds each has its turn, in the order given.
func (s *scenario) pickMoment(round int, commands ...string) moment {
	if i := round % (len(commands) + 1); i < len(commands) {
		return moment{command: commands[i], lost: s.rand.IntN(2) == 0}
	}
	return moment{}
}

// anyTime is how long it takes at most until any time is now: longer than a pass and the pause after it.
const anyTime = 400 * time.Millisecond

// arm has the proxy look out for the moment.
func (m moment) arm(p *proxy) {
	if m.command != "" {
		p.stallWhen(m.command)
	}
}

// await returns at the moment. From then until over, nothing goes through the proxy.
func (m moment) await(s *scenario, p *proxy) {
	s.Helper()
	if m.command == "" {
		<-time.After(time.Duration(s.rand.Int64N(int64(anyTime))))
		return
	}
	eventually(s, "the program sends "+m.command, p.stalled)
}

// over lets things go on after the program was killed, or told to stop. What it had sent arrives now, or never.
func (m moment) over(p *proxy) {
	if m.lost {
		p.set(resetting)
	}
	p.set(forwarding)
}

// scriptName is how a script is called on the wire: the digest of its text. file is a path from the repository's root.
func scriptName(t testing.TB, file string) string {
	t.Helper()
	source, err := os.ReadFile("../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return redis.NewScript(string(source)).Hash()
}
