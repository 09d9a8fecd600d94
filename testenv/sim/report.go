package sim

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
)

// Failure is a broken invariant.
type Failure struct {
	Seed      uint64
	Step      uint64
	At        time.Duration // virtual time since the world began
	Invariant string
	Text      string
	Trace     []string // the last lines before the failure
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d, step %d, %s: %s: %s", f.Seed, f.Step, clockText(f.At), f.Invariant, f.Text)
}

// WriteTo prints the failure with the end of its trace and the command that replays it.
func (f *Failure) WriteTo(out io.Writer) (int64, error) {
	var b strings.Builder
	for _, line := range f.Trace {
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(&b, "seed       %d\nstep       %d\ntime       %s\ninvariant  %s\nbroken by  %s\nreplay     make sim SEEDS=1 SEED_START=%d VERBOSE=1\n",
		f.Seed, f.Step, clockText(f.At), f.Invariant, f.Text, f.Seed)
	n, err := io.WriteString(out, b.String())
	return int64(n), err
}

// Stats counts the events of one run or of several.
type Stats struct {
	Seeds       int
	Steps       uint64 // events
	Turns       uint64 // of keepers
	Virtual     time.Duration
	Pods        int
	ADDs        int
	Answered    int // ADDs with an address
	DELs        int
	LostDELs    int
	MissedDELs  int // found by the daemon
	Starts      int
	Crashes     int
	Drains      int
	Reboots     int
	Meddled     int // changes by other people
	Quarantines int
	Leaks       int // leaked ENIs that a sweep deleted
	Mutating    int // calls to EC2
	Describing  int
	Throttled   int // by the buckets

	Calls    map[string]int
	Refused  map[string]int // calls throttled by the buckets
	Faults   map[Fault]int
	Failures map[cause.Code]int // of ADDs
}

func (s *Stats) call(action string, mutating bool) {
	if mutating {
		s.Mutating++
	} else {
		s.Describing++
	}
	if s.Calls == nil {
		s.Calls = map[string]int{}
	}
	s.Calls[action]++
}

func (s *Stats) throttled(action string) {
	s.Throttled++
	if s.Refused == nil {
		s.Refused = map[string]int{}
	}
	s.Refused[action]++
}

func (s *Stats) count(f Fault) {
	if s.Faults == nil {
		s.Faults = map[Fault]int{}
	}
	s.Faults[f]++
}

func (s *Stats) failed(code string) {
	if s.Failures == nil {
		s.Failures = map[cause.Code]int{}
	}
	s.Failures[cause.Code(code)]++
}

// Add adds the counts of another run.
func (s *Stats) Add(o Stats) {
	s.Seeds += o.Seeds
	s.Steps += o.Steps
	s.Turns += o.Turns
	s.Virtual += o.Virtual
	s.Pods += o.Pods
	s.ADDs += o.ADDs
	s.Answered += o.Answered
	s.DELs += o.DELs
	s.LostDELs += o.LostDELs
	s.MissedDELs += o.MissedDELs
	s.Starts += o.Starts
	s.Crashes += o.Crashes
	s.Drains += o.Drains
	s.Reboots += o.Reboots
	s.Meddled += o.Meddled
	s.Quarantines += o.Quarantines
	s.Leaks += o.Leaks
	s.Mutating += o.Mutating
	s.Describing += o.Describing
	s.Throttled += o.Throttled
	s.Calls = sum(s.Calls, o.Calls)
	s.Refused = sum(s.Refused, o.Refused)
	s.Faults = sum(s.Faults, o.Faults)
	s.Failures = sum(s.Failures, o.Failures)
}

func sum[K comparable](to, from map[K]int) map[K]int {
	if to == nil {
		to = make(map[K]int, len(from))
	}
	for k, n := range from {
		to[k] += n
	}
	return to
}

// String returns the summary, in several lines.
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seeds    %d: %d steps, %.0f virtual hours\n", s.Seeds, s.Steps, s.Virtual.Hours())
	fmt.Fprintf(&b, "pods     %d: %d ADDs, %d got an address, %d DELs; %d DELs lost, %d addresses freed without one\n",
		s.Pods, s.ADDs, s.Answered, s.DELs, s.LostDELs, s.MissedDELs)
	fmt.Fprintf(&b, "daemons  %d starts, %d crashes, %d drains, %d reboots\n", s.Starts, s.Crashes, s.Drains, s.Reboots)
	fmt.Fprintf(&b, "EC2      %d mutating calls, %d others, %d throttled; %d changes by others, %d quarantines, %d leaked ENIs swept\n",
		s.Mutating, s.Describing, s.Throttled, s.Meddled, s.Quarantines, s.Leaks)
	fmt.Fprintf(&b, "calls    %s\n", counts(s.Calls))
	fmt.Fprintf(&b, "faults   %s\n", counts(s.Faults))
	fmt.Fprintf(&b, "refusals %s\n", counts(s.Failures))
	return b.String()
}

func counts[K ~string](m map[K]int) string {
	if len(m) == 0 {
		return "none"
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(parts, ", ")
}
