package aggregate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	adds   = "awscni_add_ip_req_count"
	errs   = "awscni_ipamd_error_count"
	pooled = "awscni_total_ip_addresses"
)

// counted is a reading of one counter.
func counted(n float64) Reading { return Reading{Values: map[string]float64{adds: n}} }

// living is a reading of a process with its start time and the time of the reading, in seconds.
func living(n float64, started, at int64) Reading {
	r := counted(n)
	r.CPU, r.Started, r.At = 1, time.Unix(started, 0), time.Unix(at, 0)
	return r
}

func published(figures []Figure) map[string]float64 {
	out := map[string]float64{}
	for _, f := range figures {
		out[f.Published] = f.Value
	}
	return out
}

// step is one poll: the listed pods, the readings, and what is published.
type step struct {
	listed   []string
	readings map[string]Reading
	want     map[string]float64
}

type (
	readings = map[string]Reading
	figures  = map[string]float64
)

func TestPoll(t *testing.T) {
	t.Parallel()
	abc := []string{"a", "b", "c"}
	for name, steps := range map[string][]step{
		// Upstream publishes 10 for increases of 20, 50 and 30.
		"three nodes, 20 and 50 and 30": {
			{abc, readings{"a": counted(0), "b": counted(0), "c": counted(0)}, figures{}},
			{abc, readings{"a": counted(20), "b": counted(50), "c": counted(30)}, figures{"addReqCount": 100}},
		},
		"the first poll knows no increase": {
			{abc, readings{"a": counted(7000), "b": counted(9), "c": counted(1)}, figures{}},
			{abc, readings{"a": counted(7000), "b": counted(9), "c": counted(1)}, figures{"addReqCount": 0}},
		},
		"a node that joins counts from zero": {
			{[]string{"a"}, readings{"a": counted(10)}, figures{}},
			{[]string{"a", "b"}, readings{"a": counted(11), "b": counted(4)}, figures{"addReqCount": 5}},
		},
		"a node that joins is read late": {
			{[]string{"a"}, readings{"a": counted(10)}, figures{}},
			{[]string{"a", "b"}, readings{"a": counted(10)}, figures{"addReqCount": 0}},
			{[]string{"a", "b"}, readings{"a": counted(10), "b": counted(4)}, figures{"addReqCount": 4}},
		},
		"a node of the first list that is read late has counts of unknown age": {
			{[]string{"a", "b"}, readings{"a": counted(10)}, figures{}},
			{[]string{"a", "b"}, readings{"a": counted(12), "b": counted(5000)}, figures{"addReqCount": 2}},
			{[]string{"a", "b"}, readings{"a": counted(12), "b": counted(5001)}, figures{"addReqCount": 1}},
		},
		"a node that cannot be read for a while": {
			{[]string{"a", "b"}, readings{"a": counted(10), "b": counted(100)}, figures{}},
			{[]string{"a", "b"}, readings{"a": counted(11)}, figures{"addReqCount": 1}},
			{[]string{"a", "b"}, readings{}, figures{}},
			{[]string{"a", "b"}, readings{"a": counted(11), "b": counted(103)}, figures{"addReqCount": 3}},
		},
		"a pod that goes takes nothing with it": {
			{[]string{"a", "b"}, readings{"a": counted(10), "b": counted(100)}, figures{}},
			{[]string{"a"}, readings{"a": counted(11)}, figures{"addReqCount": 1}},
		},
		"a pod that is replaced": {
			{[]string{"a"}, readings{"a": counted(10)}, figures{}},
			{[]string{"a2"}, readings{"a2": counted(40)}, figures{"addReqCount": 40}},
		},
		"a list that was short once": {
			{[]string{"a"}, readings{"a": counted(10)}, figures{}},
			{nil, nil, figures{}},
			{[]string{"a"}, readings{"a": counted(12)}, figures{"addReqCount": 2}},
		},
		"a restart counts from zero": {
			{[]string{"a"}, readings{"a": counted(10)}, figures{}},
			{[]string{"a"}, readings{"a": counted(3)}, figures{"addReqCount": 3}},
		},
		"a restart that only the CPU time shows": {
			{[]string{"a"}, readings{"a": {Values: figures{adds: 10}, CPU: 60}}, figures{}},
			{[]string{"a"}, readings{"a": {Values: figures{adds: 30}, CPU: 2}}, figures{"addReqCount": 30}},
		},
		"a restart that another counter shows": {
			{[]string{"a"}, readings{"a": {Values: figures{adds: 10, errs: 5}}}, figures{}},
			{[]string{"a"}, readings{"a": {Values: figures{adds: 30, errs: 1}}}, figures{"addReqCount": 30, "ipamdErr": 1}},
		},
		"a process that dies young again and again": {
			{[]string{"a"}, readings{"a": living(1, 100, 110)}, figures{}},
			{[]string{"a"}, readings{"a": living(1, 130, 140)}, figures{"addReqCount": 1}},
			{[]string{"a"}, readings{"a": living(1, 160, 170)}, figures{"addReqCount": 1}},
			{[]string{"a"}, readings{"a": living(3, 160, 200)}, figures{"addReqCount": 2}},
		},
		"a clock that was set is no restart": {
			{[]string{"a"}, readings{"a": living(500, 100, 9000)}, figures{}},
			{[]string{"a"}, readings{"a": living(501, 130, 9030)}, figures{"addReqCount": 1}},
			{[]string{"a"}, readings{"a": living(502, 99, 9060)}, figures{"addReqCount": 1}},
		},
		"a clock that is ahead is no restart": {
			{[]string{"a"}, readings{"a": living(500, 9900, 9000)}, figures{}},
			{[]string{"a"}, readings{"a": living(501, 9901, 9030)}, figures{"addReqCount": 1}},
		},
		"a counter that is left out once": {
			{[]string{"a"}, readings{"a": {Values: figures{adds: 10, errs: 5}, CPU: 3}}, figures{}},
			{[]string{"a"}, readings{"a": {Values: figures{adds: 30}, CPU: 4}}, figures{"addReqCount": 20}},
			{[]string{"a"}, readings{"a": {Values: figures{adds: 30, errs: 6}}}, figures{"addReqCount": 0, "ipamdErr": 1}},
			{[]string{"a"}, readings{"a": {Values: figures{adds: 31, errs: 6}, CPU: 5}}, figures{"addReqCount": 1, "ipamdErr": 0}},
		},
		"a counter that is gone with a restart": {
			{[]string{"a"}, readings{"a": {Values: figures{adds: 10, errs: 5}}}, figures{}},
			{[]string{"a"}, readings{"a": {Values: figures{adds: 3}}}, figures{"addReqCount": 3}},
			{[]string{"a"}, readings{"a": {Values: figures{adds: 3, errs: 5}}}, figures{"addReqCount": 0, "ipamdErr": 5}},
		},
		"a counter that begins to be shown": {
			{[]string{"a"}, readings{"a": counted(1)}, figures{}},
			{[]string{"a"}, readings{"a": {Values: figures{adds: 1, errs: 2}}}, figures{"addReqCount": 0, "ipamdErr": 2}},
		},
		"metrics of any pod, not those of the last": {
			{[]string{"a", "b"}, readings{"a": {Values: figures{errs: 1, pooled: 5}}, "b": {Values: figures{pooled: 6}}}, figures{"totalIPAddresses": 11}},
			{[]string{"a", "b"}, readings{"a": {Values: figures{errs: 3, pooled: 5}}, "b": {Values: figures{pooled: 6}}}, figures{"ipamdErr": 2, "totalIPAddresses": 11}},
		},
		"gauges are those of the pods that were read": {
			{[]string{"a", "b"}, readings{"a": {Values: figures{pooled: 5}}, "b": {Values: figures{pooled: 6}}}, figures{"totalIPAddresses": 11}},
			{[]string{"a", "b"}, readings{"b": {Values: figures{pooled: 7}}}, figures{"totalIPAddresses": 7}},
		},
		"the last figure is of the pods that found nothing free": {
			{[]string{"a"}, readings{"a": {Values: figures{NoAddresses: 1}}}, figures{}},
			{[]string{"a"}, readings{"a": {Values: figures{NoAddresses: 4}}}, figures{"noAvailableIPAddresses": 3}},
		},
		"a reading that was not asked for": {
			{[]string{"a"}, readings{"a": counted(1), "z": counted(9)}, figures{}},
			{[]string{"a"}, readings{"a": counted(2), "z": counted(90)}, figures{"addReqCount": 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c Cluster
			for i, s := range steps {
				if diff := cmp.Diff(s.want, published(c.Poll(s.listed, s.readings))); diff != "" {
					t.Errorf("poll %d (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}

func calls(api string, count, took float64) Reading {
	return Reading{Calls: map[string]Calls{api: {Count: count, Took: took}}}
}

func TestPoll_Latency(t *testing.T) {
	t.Parallel()
	ab := []string{"a", "b"}
	for name, steps := range map[string][]step{
		"the slowest mean since the last poll": {
			{ab, readings{"a": calls("X", 100, 9e6), "b": calls("X", 0, 0)}, figures{}},
			{ab, readings{"a": calls("X", 102, 9e6+300), "b": calls("X", 1, 120)}, figures{"awsAPILatency": 150}},
		},
		"calls of one API hide none of another": {
			{ab, readings{"a": calls("X", 10, 100)}, figures{}},
			{ab, readings{"a": {Calls: map[string]Calls{"X": {1010, 10100}, "Y": {1, 5000}}}}, figures{"awsAPILatency": 5000}},
		},
		"no call, no latency": {
			{ab, readings{"a": calls("X", 10, 100)}, figures{}},
			{ab, readings{"a": calls("X", 10, 100)}, figures{}},
		},
		"calls after a restart": {
			{ab, readings{"a": calls("X", 10, 100)}, figures{}},
			{ab, readings{"a": calls("X", 2, 80)}, figures{"awsAPILatency": 40}},
		},
		"calls that are left out once": {
			{ab, readings{"a": calls("X", 10, 1000)}, figures{}},
			{ab, readings{"a": {}}, figures{}},
			{ab, readings{"a": calls("X", 11, 1007)}, figures{"awsAPILatency": 7}},
		},
		"a quantile where one is shown": {
			{ab, readings{"a": {P99: 70}}, figures{}},
			{ab, readings{"a": {P99: 75}, "b": calls("X", 1, 20)}, figures{"awsAPILatency": 75}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c Cluster
			for i, s := range steps {
				if diff := cmp.Diff(s.want, published(c.Poll(s.listed, s.readings))); diff != "" {
					t.Errorf("poll %d (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	sources, names := map[string]bool{}, map[string]bool{}
	for _, m := range Metrics() {
		if sources[m.Source] || names[m.Published] {
			t.Errorf("%+v is there twice", m)
		}
		sources[m.Source], names[m.Published] = true, true
	}
	if len(sources) != 21 {
		t.Errorf("%d metrics, want upstream's 20 and one of ours", len(sources))
	}
	Metrics()[0].Source = "changed"
	if Metrics()[0].Source == "changed" {
		t.Error("the table can be changed from outside")
	}
}

// TestPoll_SumsToTheTruth: whatever pods appear, disappear, restart or cannot be read, the
// published increases add up to everything that was counted and could be known.
func TestPoll_SumsToTheTruth(t *testing.T) {
	t.Parallel()
	for seed := range uint64(120) {
		if err := sumsToTheTruth(rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// process is the actual state of one pod.
type process struct {
	reading Reading
	started time.Time
	known   bool    // its counts up to now are published, or never will be
	unsent  float64 // counted since then
}

// sumsToTheTruth simulates a random history of a cluster.
func sumsToTheTruth(r *rand.Rand) error {
	var c Cluster
	pods := map[string]*process{}
	var want, got float64
	for poll := range 40 {
		now := time.Unix(int64(poll)*30, 0)
		for range r.IntN(3) {
			uid := fmt.Sprintf("pod-%d-%d", poll, len(pods))
			p := &process{reading: counted(0), started: now.Add(-10 * time.Second), known: poll > 0}
			p.count(float64(r.IntN(50)))
			pods[uid] = p
		}
		for _, uid := range slices.Sorted(maps.Keys(pods)) {
			p := pods[uid]
			switch r.IntN(12) {
			case 0: // counts that were not read are lost with the pod
				delete(pods, uid)
			case 1: // or with the process
				p.reading, p.unsent, p.started = counted(0), 0, now.Add(-time.Second)
			}
			p.count(float64(r.IntN(50)))
		}
		read := map[string]Reading{}
		for _, uid := range slices.Sorted(maps.Keys(pods)) {
			if p := pods[uid]; r.IntN(4) > 0 {
				if p.known && r.IntN(6) == 0 { // the counter is missing
					read[uid] = Reading{Values: figures{}, CPU: p.reading.CPU, Started: p.started, At: now}
					continue
				}
				if p.known {
					want += p.unsent
				}
				p.known, p.unsent = true, 0
				read[uid] = Reading{Values: maps.Clone(p.reading.Values), CPU: p.reading.CPU, Started: p.started, At: now}
			}
		}
		got += published(c.Poll(slices.Sorted(maps.Keys(pods)), read))["addReqCount"]
		if got != want {
			return fmt.Errorf("poll %d: published %v in all, %v were counted", poll, got, want)
		}
	}
	return nil
}

// count adds calls and the CPU time they cost.
func (p *process) count(n float64) {
	p.reading.Values[adds] += n
	p.reading.CPU += n + 1
	p.unsent += n
}

func TestCluster_Forgets(t *testing.T) {
	t.Parallel()
	var c Cluster
	for i := range 1000 {
		uid := fmt.Sprint(i)
		c.Poll([]string{uid}, map[string]Reading{uid: counted(1)})
	}
	if len(c.pods) > forgetAfter+1 {
		t.Errorf("%d pods are remembered, one exists", len(c.pods))
	}
}
