package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/text/golden"
)

// TestRecordedMetrics compares the series of healthy nodes, and of nodes that EC2 refuses
// everything, with the recordings in testdata/metrics, on which tools/monitoring evaluates
// every alert and every panel. Run it with -update to record them.
func TestRecordedMetrics(t *testing.T) {
	t.Parallel()
	refused := func(code string) []fakeaws.Rule {
		var rules []fakeaws.Rule
		for _, action := range []string{"AssignPrivateIpAddresses", "CreateNetworkInterface"} {
			rules = append(rules, fakeaws.Rule{Action: action, Fault: fakeaws.Fault{Code: code, Message: "no"}})
		}
		return rules
	}
	for scene, row := range map[string]struct {
		env   map[string]string
		fault []fakeaws.Rule
	}{
		"secondary":    {},
		"prefix":       {env: map[string]string{"ENABLE_PREFIX_DELEGATION": "true"}},
		"subnet-empty": {fault: refused("InsufficientFreeAddressesInSubnet")},
		"unauthorized": {fault: refused("UnauthorizedOperation")},
		"throttled":    {fault: refused("RequestLimitExceeded")},
	} {
		t.Run(scene, func(t *testing.T) {
			l := newLab(t, fakeaws.Options{})
			l.refusing = len(row.fault) > 0
			env := map[string]string{"CNI_ADD_WAIT": "1s"}
			maps.Copy(env, row.env)
			n := l.boot("m5.large", env)
			l.settled(n)
			l.recorded(n, scene, "before", nil)
			if len(row.fault) == 0 {
				pods := l.mustAdd(n, "web", 3, 1)
				l.settled(n)
				l.recorded(n, scene, "three-pods", nil)
				l.del(n, pods[:1], 1)
				l.recorded(n, scene, "one-deleted", nil)
				return
			}
			l.breakEC2(row.fault...)
			if _, failed := add(n, "web", 30, 4); len(failed) == 0 {
				t.Fatal("EC2 gives nothing, and 30 pods have an address")
			}
			more := 0
			l.recorded(n, scene, "fault", func() { // these ADDs may all have given up before EC2 answered
				more++
				add(n, fmt.Sprintf("more-%d", more), 1, 1)
			})
		})
	}
}

// recorded waits until a node has the series of a recording: some come and go with the
// daemon's pauses, and some need more to happen, which goOn makes. With -update it records them.
func (l *lab) recorded(n *node.Node, scene, moment string, goOn func()) {
	l.t.Helper()
	runtime := regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?(go|process)_.*\n`) // as in the recordings of upstream
	path := filepath.Join("testdata", "metrics", scene, moment+".txt")
	if golden.Update() {
		golden.File(l.t, path, []byte(runtime.ReplaceAllString(l.scrape(n), "")))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	// Whether an ADD gives up before EC2 has refused anything depends on who is faster.
	early := regexp.MustCompile(`(?m)^awscni_failed_add_count\{cause="pool-dry"\}.*\n`)
	names := func(text string) []string {
		text = early.ReplaceAllString(text, "")
		return slices.Sorted(maps.Keys(series(planReasons.ReplaceAllString(text, "…"))))
	}
	diff := ""
	defer func() {
		if diff != "" {
			l.t.Logf("series (-recorded +got):\n%s", diff)
		}
	}()
	testenv.Eventually(l.t, "the series of "+path, func() bool {
		diff = cmp.Diff(names(string(want)), names(runtime.ReplaceAllString(l.scrape(n), "")))
		if diff != "" && goOn != nil {
			goOn()
		}
		return diff == ""
	})
}
