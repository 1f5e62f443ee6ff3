package chaos

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
)

// at is the time of the tables' snapshots.
const at = 1_700_000_000

func played(r int64) *entry { return &entry{outcome: acknowledged, recordedAt: r, atLeast: r} }

func batched(from, r int64) *entry {
	return &entry{outcome: acknowledged, recordedAt: r, atLeast: from}
}

func left(guard int64) *entry { return &entry{leave: true, outcome: acknowledged, recordedAt: guard} }

// as gives an entry another outcome.
func as(o outcome, e *entry) *entry {
	e.outcome = o
	return e
}

func TestJudgeOfViewers(t *testing.T) {
	t.Parallel()
	const absent = ""
	tests := map[string]struct {
		entries []*entry // of viewer u1 of video 10001
		stored  string   // in the hash
		want    []kind
	}{
		"as played":                           {entries: []*entry{played(at - 5)}, stored: "1699999995"},
		"lost":                                {entries: []*entry{played(at - 5)}, stored: absent, want: []kind{lost}},
		"lost at the window's edge":           {entries: []*entry{played(at - 600)}, stored: absent, want: []kind{lost}},
		"beyond the window and gone":          {entries: []*entry{played(at - 601)}, stored: absent},
		"beyond the window and there":         {entries: []*entry{played(at - 700)}, stored: "1699999300", want: []kind{stale}},
		"beyond it since the pass":            {entries: []*entry{played(at - 601)}, stored: "1699999399"},
		"a later beat was lost":               {entries: []*entry{played(at - 9), played(at - 5)}, stored: "1699999991", want: []kind{wrongTime}},
		"a time that nobody gave":             {entries: []*entry{played(at - 9)}, stored: "1699999995", want: []kind{wrongTime}},
		"no time":                             {entries: []*entry{played(at - 9)}, stored: "soon", want: []kind{wrongTime}},
		"of the future":                       {entries: []*entry{as(unknown, played(0))}, stored: "1700000001", want: []kind{wrongTime}},
		"a batch's first play":                {entries: []*entry{batched(at-7, at-5)}, stored: "1699999994"},
		"a batch's play, too early":           {entries: []*entry{batched(at-7, at-5)}, stored: "1699999992", want: []kind{wrongTime}},
		"never played":                        {stored: "1699999995", want: []kind{ghost}},
		"refused":                             {entries: []*entry{as(refused, played(0))}, stored: "1699999995", want: []kind{ghost}},
		"only left":                           {entries: []*entry{left(0)}, stored: "1699999995", want: []kind{ghost}},
		"unknown and there":                   {entries: []*entry{as(unknown, played(0))}, stored: "1699999995"},
		"unknown and not":                     {entries: []*entry{as(unknown, played(0))}, stored: absent},
		"unknown beside an earlier play":      {entries: []*entry{played(at - 9), as(unknown, played(0))}, stored: "1699999991"},
		"unknown, and the earlier play lost":  {entries: []*entry{played(at - 9), as(unknown, played(0))}, stored: absent, want: []kind{lost}},
		"left":                                {entries: []*entry{played(at - 9), left(at - 9)}, stored: absent},
		"left and there":                      {entries: []*entry{played(at - 9), left(at - 9)}, stored: "1699999991", want: []kind{stayed}},
		"left without a guard and there":      {entries: []*entry{played(at - 9), left(0)}, stored: "1699999991", want: []kind{stayed}},
		"an older tab left":                   {entries: []*entry{played(at - 9), played(at - 5), left(at - 9)}, stored: "1699999995"},
		"an older tab's leave removed":        {entries: []*entry{played(at - 9), played(at - 5), left(at - 9)}, stored: absent, want: []kind{lost}},
		"left, perhaps":                       {entries: []*entry{played(at - 9), as(unknown, left(0))}, stored: absent},
		"left, perhaps, and there":            {entries: []*entry{played(at - 9), as(unknown, left(0))}, stored: "1699999991"},
		"a refused leave removed":             {entries: []*entry{played(at - 9), as(refused, left(0))}, stored: absent, want: []kind{lost}},
		"back after a leave":                  {entries: []*entry{played(at - 9), left(at - 9), played(at - 5)}, stored: "1699999995"},
		"back after a leave and lost":         {entries: []*entry{played(at - 9), left(at - 9), played(at - 5)}, stored: absent, want: []kind{lost}},
		"back, and the leave may come late":   {entries: []*entry{played(at - 9), as(unknown, left(0)), played(at - 5)}, stored: absent},
		"back, and a guarded leave came late": {entries: []*entry{played(at - 9), as(unknown, left(at-9)), played(at - 5)}, stored: absent, want: []kind{lost}},
		"an unknown play may outlast a leave": {entries: []*entry{as(unknown, played(0)), left(0)}, stored: "1699999995"},
		"a leave of a batch's viewer":         {entries: []*entry{batched(at-7, at-5), left(at - 5)}, stored: "1699999994", want: []kind{stayed}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			if tt.entries != nil {
				l.entries[viewing{"10001", "u1"}] = tt.entries
			}
			s := soundSnapshot()
			if tt.stored != absent {
				s.keys["video:online:10001"] = value{kind: "hash", ttl: keyTTL, fields: map[string]string{"u1": tt.stored}}
				s.keys["video:online:count:10001"] = value{kind: "string", ttl: countTTL, text: "1"}
			}
			wantKinds(t, s, l, tt.want...)
		})
	}
}

// soundSnapshot is of a site without viewers, whose last pass began half a minute ago.
func soundSnapshot() snapshot {
	return snapshot{now: time.Unix(at, 0), keys: map[string]value{
		"video:worker:last_pass": {kind: "hash", ttl: keyTTL, fields: map[string]string{
			"passes": "7", "errors": "0", "started_at": strconv.Itoa(at - 30), "finished_at": strconv.Itoa(at - 29)}},
		"video:worker:lease": {kind: "string", ttl: 15 * time.Second, text: "token host:1"},
	}}
}

func wantKinds(t *testing.T, s snapshot, l *ledger, want ...kind) {
	t.Helper()
	j := judge{prefix: "video", window: window, keyTTL: keyTTL, countTTL: countTTL}
	var got []kind
	found := j.decide(s, l)
	for _, d := range found {
		got = append(got, d.kind)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found %v (-want +got):\n%s", found, diff)
	}
}

func TestJudgeOfKeys(t *testing.T) {
	t.Parallel()
	const hash, counted, pass = "video:online:10001", "video:online:count:10001", "video:worker:last_pass"
	viewers := map[string]string{"u1": strconv.Itoa(at - 5)}
	tests := map[string]struct {
		key  string
		is   value // other than in a site where u1 watches 10001
		want []kind
	}{
		"sound":                    {hash, value{kind: "hash", ttl: keyTTL, fields: viewers}, nil},
		"count too large":          {counted, value{kind: "string", ttl: countTTL, text: "2"}, []kind{wrongCount}},
		"no count":                 {counted, value{kind: "string", ttl: countTTL}, []kind{wrongCount}},
		"count without a hash":     {"video:online:count:10002", value{kind: "string", ttl: countTTL, text: "1"}, []kind{wrongCount}},
		"count of nobody":          {"video:online:count:10002", value{kind: "string", ttl: countTTL, text: "0"}, nil},
		"hash without a TTL":       {hash, value{kind: "hash", ttl: noTTL, fields: viewers}, []kind{wrongTTL}},
		"hash with a long TTL":     {hash, value{kind: "hash", ttl: keyTTL + time.Second, fields: viewers}, []kind{wrongTTL}},
		"hash renewed by the play": {hash, value{kind: "hash", ttl: keyTTL - 6*time.Second, fields: viewers}, nil},
		"hash with a short TTL":    {hash, value{kind: "hash", ttl: keyTTL - 7*time.Second, fields: viewers}, []kind{wrongTTL}},
		"hash of a second":         {hash, value{kind: "hash", ttl: time.Second, fields: viewers}, []kind{wrongTTL}},
		"count near its renewal":   {counted, value{kind: "string", ttl: countTTL/4 - 30*time.Second, text: "1"}, nil},
		"count with a short TTL":   {counted, value{kind: "string", ttl: countTTL/4 - 33*time.Second, text: "1"}, []kind{wrongTTL}},
		"last pass of a second": {pass, value{kind: "hash", ttl: time.Second, fields: map[string]string{
			"started_at": strconv.Itoa(at - 30), "finished_at": strconv.Itoa(at - 29)}}, []kind{wrongTTL}},
		"count that goes before it was promised to": {pass, value{kind: "hash", ttl: keyTTL, fields: map[string]string{
			"started_at": strconv.Itoa(at - 30), "finished_at": strconv.Itoa(at - 29),
			"counts_until": strconv.FormatInt(at+int64(countTTL/time.Second)+2, 10)}}, []kind{wrongTTL}},
		"count without a TTL":       {counted, value{kind: "string", ttl: noTTL, text: "1"}, []kind{wrongTTL}},
		"count with a jittered TTL": {counted, value{kind: "string", ttl: countTTL + 10*time.Second, text: "1"}, nil},
		"count with a long TTL":     {counted, value{kind: "string", ttl: countTTL + 20*time.Second, text: "1"}, []kind{wrongTTL}},
		"hash of another type":      {"video:online:10002", value{kind: "list", ttl: keyTTL}, []kind{strange}},
		"key of nobody":             {"video:else", value{kind: "string", ttl: keyTTL}, []kind{strange}},
		"a partial pass": {pass, value{kind: "hash", ttl: keyTTL, fields: map[string]string{
			"started_at": strconv.Itoa(at), "finished_at": strconv.Itoa(at - 30)}}, []kind{unfinished}},
		"no pass": {pass, value{kind: "hash", ttl: keyTTL}, []kind{unfinished}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			l.entries[viewing{"10001", "u1"}] = []*entry{played(at - 5)}
			s := soundSnapshot()
			s.keys[hash] = value{kind: "hash", ttl: keyTTL, fields: viewers}
			s.keys[counted] = value{kind: "string", ttl: countTTL, text: "1"}
			s.keys[tt.key] = tt.is
			wantKinds(t, s, l, tt.want...)
		})
	}
}

// TestJudgeTellsAll: one fault does not hide another, and a further check is made too.
func TestJudgeTellsAll(t *testing.T) {
	t.Parallel()
	l := newLedger()
	for i := range 3 {
		l.entries[viewing{"10001", fmt.Sprint("u", i)}] = []*entry{played(at - 5)}
	}
	j := judge{prefix: "video", window: window, keyTTL: keyTTL, countTTL: countTTL}
	j.known = func(key string) bool { return key == "video:stats:online" }
	j.checks = []check{func(e evidence) []difference {
		return []difference{{ghost, "video:stats:online", fmt.Sprint(e.keys["video:stats:online"].scores)}}
	}}
	s := soundSnapshot()
	s.keys["video:stats:online"] = value{kind: "zset", ttl: 24 * time.Hour, scores: map[string]float64{"u9": at}}
	s.keys["video:online:count:10001"] = value{kind: "string", ttl: noTTL, text: "4"}
	found := j.decide(s, l)
	for k, want := range map[kind]int{lost: 3, wrongCount: 1, wrongTTL: 1, ghost: 1} {
		if got := count(found, k); got != want {
			t.Errorf("%d %s, want %d: %v", got, k, want, found)
		}
	}
}

// TestSnapshot reads what the judge is given from a real Redis.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	db := redistest.Shared(t).Client()
	prefix := redistest.Prefix(t)
	pipe := db.Pipeline()
	pipe.HSet(t.Context(), prefix+":online:10001", "u1", "5")
	pipe.Set(t.Context(), prefix+":online:count:10001", "1", time.Minute)
	pipe.ZAdd(t.Context(), prefix+":stats:online", redis.Z{Member: "u1", Score: 5})
	pipe.Set(t.Context(), prefix+"x", "not ours", 0)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := takeSnapshot(t.Context(), db, prefix+":*")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]value{
		prefix + ":online:10001":       {kind: "hash", ttl: noTTL, fields: map[string]string{"u1": "5"}},
		prefix + ":online:count:10001": {kind: "string", ttl: time.Minute, text: "1"},
		prefix + ":stats:online":       {kind: "zset", ttl: noTTL, scores: map[string]float64{"u1": 5}},
	}
	if diff := cmp.Diff(want, got.keys, cmp.AllowUnexported(value{})); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
	if age := time.Since(got.now).Abs(); age > time.Minute {
		t.Errorf("now = %s, want Redis's time", got.now)
	}
}
