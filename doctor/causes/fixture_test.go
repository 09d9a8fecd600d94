package causes

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/testenv/situation"
	"cnictl/testenv/situation/corpus"
)

// fixture is a situation of testdata.
type fixture struct {
	corpus.Situation
	name   string
	expect []string
	ev     *evidence.Evidence
}

// fixtures are read once, because nothing changes them.
func fixtures(t testing.TB) []fixture {
	t.Helper()
	all, err := readFixtures()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// everyFixture is set at night; before a commit, what all situations need alike is shown by one
// for each code, and by the scenarios.
var everyFixture bool

// sampled returns the fixtures for tests that ask the same of each.
func sampled(t testing.TB) []fixture {
	t.Helper()
	all := fixtures(t)
	if everyFixture {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(f fixture) bool { return f.Variant() })
}

var readFixtures = sync.OnceValues(func() ([]fixture, error) {
	all, err := corpus.Read("testdata")
	var out []fixture
	for _, s := range all {
		out = append(out, fixture{s, s.Name, s.Expect, s.Evidence})
	}
	return out, err
})

// TestFixtures: each situation yields the causes that it names, at least as probable, and nothing
// else above info.
func TestFixtures(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			r := Diagnose(f.ev, Options{})
			if diff := cmp.Diff(f.expect, corpus.Reported(r, f.expect)); diff != "" {
				t.Errorf("causes above info (-want +got):\n%s\n%s", diff, corpus.Printed(r))
			}
			if code, near := f.Of(); code != "" {
				if _, ok := catalogue.Lookup(code); !ok {
					t.Errorf("the file is named after %s, which the catalogue does not have", code)
				}
				if strings.HasPrefix(code, catalogue.GroupObserved+"/") { // a cause may explain it
					seen := slices.ContainsFunc(r.Observations, func(o document.Observation) bool { return o.Kind == code })
					if near == seen {
						t.Errorf("observed: %v, but is named after %s (near: %v)\n%s", seen, code, near, corpus.Printed(r))
					}
				} else if near == slices.Contains(f.expect, code) {
					t.Errorf("expects %v, but is named after %s (near: %v)", f.expect, code, near)
				}
			}
		})
	}
}

// lackingWorlds are those in which TestHealthy_Missing lacks sources, at night all.
var lackingWorlds = corpus.HealthyWorlds[:2]

// TestHealthy: on a healthy node, nothing is found and nothing is left undecided.
func TestHealthy(t *testing.T) {
	t.Parallel()
	for _, mode := range catalogue.Modes() {
		for _, world := range corpus.HealthyWorlds {
			for _, code := range healthy(t, mode, world, "{}").Undecided {
				if code != "sgp/sg-rules" { // EC2 shows no branch ENIs of a world
					t.Errorf("%s is undecided on a healthy node, mode %s, %s", code, mode, world)
				}
			}
		}
	}
}

// TestHealthy_Missing: unread sources never yield a cause.
func TestHealthy_Missing(t *testing.T) {
	t.Parallel()
	for _, mode := range catalogue.Modes() {
		for _, world := range lackingWorlds {
			for _, ids := range []string{
				"intro", "log", "kern", "host", "ec2", "k8s", "intro.enis", "metrics", "log.ipamd", "kern.link", "host.env", "imds", "ec2.subnet", "ec2.type", "k8s.ds", "k8s.node", "k8s.pod",
				"k8s.ds host.env intro.config intro.summary", "intro log metrics", "intro log metrics ec2",
			} {
				var sources []string
				for id := range strings.FieldsSeq(ids) {
					sources = append(sources, id+": {missing: forbidden}")
				}
				healthy(t, mode, world, "{"+strings.Join(sources, ", ")+"}")
			}
		}
	}
}

func healthy(t *testing.T, mode, world, sources string) document.DoctorReport {
	t.Helper()
	ev, err := situation.Load([]byte("schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nmode: " + mode + "\nworld: " + world + "\nsources: " + sources + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := Diagnose(ev, Options{})
	if len(r.Findings)+len(r.Explained) > 0 {
		t.Errorf("found in a healthy node, mode %s, %s, %s:\n%s", mode, world, sources, corpus.Printed(r))
	}
	return r
}
