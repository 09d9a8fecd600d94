package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
	"cnictl/testenv/situation"
	"cnictl/testenv/situation/corpus"
	"cnictl/testenv/text/golden"
)

// fixture is a situation of testdata; the second line may be "# to: VERSION" or "# images:
// REFERENCES".
type fixture struct {
	corpus.Situation
	move Move
}

var readFixtures = sync.OnceValues(func() (out []fixture, err error) {
	all, err := corpus.Read("testdata")
	for _, s := range all {
		f := fixture{Situation: s}
		if to, ok := strings.CutPrefix(s.Second, "# to: "); ok {
			f.move.To, _ = evidence.ParseVersion(to)
		}
		if images, ok := strings.CutPrefix(s.Second, "# images: "); ok {
			f.move.Images = strings.Fields(images)
		}
		out = append(out, f)
	}
	return out, err
})

func fixtures(t *testing.T) []fixture {
	t.Helper()
	all, err := readFixtures()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestFixtures: each situation yields the checks that it names, at least as probable, and nothing
// else above info. Evidence that was saved yields the same report.
func TestFixtures(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			r := f.move.Diagnose(f.Evidence, nil)
			if diff := cmp.Diff(f.Expect, corpus.Reported(r, f.Expect)); diff != "" {
				t.Errorf("above info (-want +got):\n%s\n%s", diff, corpus.Printed(r))
			}
			if code, near := f.Of(); near == slices.Contains(f.Expect, code) {
				t.Errorf("expects %v, but is named after %s (near: %v)", f.Expect, code, near)
			}
			saved, err := file.Save(f.Evidence)
			if err != nil {
				t.Fatal(err)
			}
			ev, err := file.Load(saved)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r, f.move.Diagnose(ev, nil)); diff != "" {
				t.Errorf("saved and read again (-want +got):\n%s", diff)
			}
		})
	}
}

// ofOldReleases are the obstacles to migrating from an old release that is otherwise healthy.
var ofOldReleases = []string{"migrate/probe-addr", "migrate/version-base"}

// TestHealthy: a healthy node can move, whatever was not read.
func TestHealthy(t *testing.T) {
	t.Parallel()
	for _, mode := range catalogue.Modes() {
		for i, world := range corpus.HealthyWorlds {
			lacks := []string{"{}"}
			if i < 2 {
				for _, id := range []string{"intro", "log", "kern", "host", "ec2", "k8s", "k8s.ds", "k8s.node", "k8s.pod"} {
					lacks = append(lacks, "{"+id+": {missing: forbidden}}")
				}
			}
			for _, sources := range lacks {
				const head = "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\n"
				ev, err := situation.Load([]byte(head + "mode: " + mode + "\nworld: " + world + "\nsources: " + sources + "\n"))
				if err != nil {
					t.Fatal(err)
				}
				for _, code := range corpus.Reported((Move{}).Diagnose(ev, nil), nil) {
					if !strings.Contains(world, "version: ") || !slices.Contains(ofOldReleases, code) {
						t.Errorf("it could not move because of %s, mode %s, %s, %s", code, mode, world, sources)
					}
				}
			}
		}
	}
}

// TestCoverage: each check of the catalogue is made once, a situation shows it, and another one
// resembles it.
func TestCoverage(t *testing.T) {
	t.Parallel()
	shown, near, made := map[string]int{}, map[string]int{}, map[string]int{}
	for _, f := range fixtures(t) {
		if code, isNear := f.Of(); isNear {
			near[code]++
		}
		for _, code := range f.Expect {
			shown[code]++
		}
	}
	for _, x := range checks {
		made[x.code]++
	}
	for entry := range catalogue.All() {
		if code := entry.Code; entry.Group() == catalogue.GroupMigrate {
			if made[code] != 1 || shown[code] == 0 || near[code] == 0 {
				t.Errorf("%s: %d checks, shown by %d situations, with %d look-alikes", code, made[code], shown[code], near[code])
			}
			delete(made, code)
		}
	}
	if len(made) > 0 {
		t.Errorf("not in the catalogue: %v", slices.Sorted(maps.Keys(made)))
	}
}

// changed returns the checks of a move with a change of their results.
func changed(m Move, change func(code string, results []result) []result) []causes.Rule {
	all := m.checks()
	for i, x := range all {
		if x.Node != nil {
			all[i].Node = func(c *causes.Case) []result { return change(x.Code, x.Node(c)) }
		} else {
			all[i].All = func(cs []*causes.Case) []result { return change(x.Code, x.All(cs)) }
		}
	}
	return all
}

// TestMutations: every fact that a check requires matters. Removing or negating any of them changes
// the answer for some situation.
func TestMutations(t *testing.T) {
	t.Parallel()
	most := map[string]int{}
	for _, f := range fixtures(t) {
		causes.Diagnose(f.Evidence, causes.Options{Checks: changed(f.move, func(code string, results []result) []result {
			for _, r := range results {
				most[code] = max(most[code], len(r.Decisive))
			}
			return results
		})})
	}
	for code, n := range most {
		for at := range n {
			for _, to := range []causes.State{yes, no} {
				t.Run(fmt.Sprintf("%s/%d/%d", code, at, to), func(t *testing.T) {
					t.Parallel()
					if !slices.ContainsFunc(fixtures(t), func(f fixture) bool {
						wants := func(c string) bool { return c == code }
						altered := changed(f.move, func(_ string, results []result) []result {
							for i := range results {
								if at < len(results[i].Decisive) {
									results[i].Decisive = slices.Clone(results[i].Decisive)
									results[i].Decisive[at].State = to
								}
							}
							return results
						})
						before := f.move.Diagnose(f.Evidence, wants)
						return !cmp.Equal(before, causes.Diagnose(f.Evidence, causes.Options{Checks: altered, Wants: wants}))
					}) {
						t.Error("the fact does not matter: no situation depends on it")
					}
				})
			}
		}
	}
}

// TestDropped: sources that were not read rule nothing out. Whatever is ruled out is ruled out by a
// fact of a source that was read.
func TestDropped(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t) {
		if f.Variant() {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			for without, ev := range f.Dropped(corpus.SourceIDs()) {
				read, unfounded := corpus.WasRead(ev), map[string]string{}
				r := causes.Diagnose(ev, causes.Options{Checks: changed(f.move, func(code string, results []result) []result {
					for _, x := range results {
						if !slices.ContainsFunc(x.Decisive, func(f fact) bool { return f.State == no && read(f.Source) }) {
							unfounded[code] = x.Summary
						}
					}
					return results
				})})
				for _, code := range r.RuledOut {
					if slices.Contains(f.Expect, code) {
						t.Errorf("without %s %s is ruled out", without, code)
					}
					if summary, bad := unfounded[code]; bad {
						t.Errorf("without %s %s is ruled out by nothing that was read: %s", without, code, summary)
					}
				}
			}
		})
	}
}

// TestOnce: what concerns the cluster is checked once, however many nodes there are.
func TestOnce(t *testing.T) {
	t.Parallel()
	ev, err := situation.Load([]byte("schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nnodes:\n" +
		"  - {world: {node: a}}\n  - {world: {node: b}}\n  - {world: {node: c}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	causes.Diagnose(ev, causes.Options{Checks: changed(Move{}, func(code string, results []result) []result {
		times[code]++
		for _, r := range results {
			if r.Scope.Cluster && times[code] > 1 && code != "migrate/images" { // said of each node if no images were named
				t.Errorf("%s concerns the cluster, and is checked %d times", code, times[code])
			}
		}
		return results
	})})
	if times["migrate/iam"] != len(ev.Nodes) || times["migrate/selector"] != 1 {
		t.Errorf("checked so often: %v", times)
	}
}

// TestFirstFix: each situation states the fix that must come first for each of its findings.
func TestFirstFix(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, f := range fixtures(t) {
		text.WriteString(corpus.FirstFixes(f.Situation, f.move.Diagnose(f.Evidence, nil)))
	}
	golden.File(t, "testdata/first-fixes.txt", []byte(text.String()))
}
