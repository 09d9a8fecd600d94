package e2e_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/notice"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// setting returns a row of the daemon's settings.
func (m *member) setting(name string) introspect.ConfigRow {
	m.c.t.Helper()
	var doc introspect.NodeConfig
	m.c.get(m.Node, introspect.PathConfig, &doc)
	i := slices.IndexFunc(doc.Items, func(r introspect.ConfigRow) bool { return r.Name == name })
	if i < 0 {
		m.c.t.Fatalf("no setting %s", name)
	}
	return doc.Items[i]
}

// addresses counts the secondary IPs of the member's ENIs.
func (m *member) addresses() (n int) {
	for _, e := range m.enis() {
		n += len(e.SecondaryIPs)
	}
	return n
}

const (
	warmLabel  = "cnictl.dev/warm-ip-target"
	limitLabel = "cnictl.dev/max-eni"
)

// TestModes_TargetsFromLabels: a node that joins with labels has their targets from the start, and its
// pool follows each change without a restart.
func TestModes_TargetsFromLabels(t *testing.T) {
	t.Parallel()
	t.Run("on", testLabelsFollowed)
	t.Run("off", testLabelsOff)
}

func labelledNode(t *testing.T, env map[string]string) *member {
	t.Helper()
	m := newCluster(t, fakeaws.Options{}).join(fakeaws.InstanceSpec{Type: "m5.large"}, func(n *corev1.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[warmLabel] = "5"
	})
	m.start(with(env, "WARM_IP_TARGET=2", "IP_COOLDOWN_PERIOD=0"))
	return m
}

func testLabelsFollowed(t *testing.T) {
	t.Parallel()
	m := labelledNode(t, nil)
	holds := func(addresses, enis int) {
		t.Helper()
		testenv.Eventually(t, "a pool of "+strconv.Itoa(addresses), func() bool { return m.addresses() == addresses && len(m.enis()) == enis })
	}
	holds(5, 1)
	if row := m.setting("WARM_IP_TARGET"); row.Source != "label" || row.Effective != "5" || *row.Declared != "2" || row.Label == nil || *row.Label != "5" {
		t.Errorf("setting %+v", row)
	}
	var theirs introspect.IPAMEnv // upstream's document shows the variables
	if m.c.get(m.Node, introspect.PathIPAMEnv, &theirs); theirs.WarmIPTarget != 2 {
		t.Errorf("upstream's document shows WARM_IP_TARGET=%d", theirs.WarmIPTarget)
	}

	m.mark(map[string]any{warmLabel: "7"}, nil)
	holds(7, 1)
	if got := *m.summary().Targets.WarmIP; got != 7 {
		t.Errorf("the summary shows a target of %d", got)
	}

	m.mark(map[string]any{warmLabel: "many"}, nil)
	const says = `label cnictl.dev/warm-ip-target="many" of the Node cannot be used, it must be an integer ≥ 0; WARM_IP_TARGET stays 7`
	testenv.Eventually(t, "the problem in the settings", func() bool { return m.setting("WARM_IP_TARGET").Problem == says })
	if row := m.setting("WARM_IP_TARGET"); row.Effective != "7" || *m.summary().ConfigProblems != 1 {
		t.Errorf("setting %+v, %d problems", row, *m.summary().ConfigProblems)
	}
	testenv.Eventually(t, "an event of the Node", func() bool {
		note, ok := m.c.evented("Node", m.name, notice.ReasonSetting)
		return ok && strings.Contains(note, says)
	})

	m.mark(map[string]any{warmLabel: "12", limitLabel: "1"}, nil)
	holds(9, 1)
	m.mark(map[string]any{limitLabel: nil}, nil)
	holds(12, 2)
	m.mark(map[string]any{limitLabel: "1"}, nil) // below what there is
	testenv.Eventually(t, "the limit in the summary", func() bool { return *m.summary().Targets.MaxENI == 1 })
	testenv.Never(t, 50, "an ENI is detached", func() bool { return m.addresses() != 12 || len(m.enis()) != 2 })

	m.mark(map[string]any{warmLabel: nil, limitLabel: nil}, nil)
	testenv.Eventually(t, "the variable's target", func() bool { return m.setting("WARM_IP_TARGET").Source == "environment" })
	if s := m.summary(); *s.Targets.WarmIP != 2 || *s.Targets.MaxENI != 0 || *s.ConfigProblems != 0 {
		t.Errorf("without labels: %+v, %d problems", s.Targets, *s.ConfigProblems)
	}
}

func testLabelsOff(t *testing.T) {
	t.Parallel()
	m := labelledNode(t, map[string]string{"CNI_TARGETS_FROM_LABELS": "false"})
	testenv.Eventually(t, "the variable's pool", func() bool { return m.addresses() == 2 })
	testenv.Eventually(t, "the Node read", func() bool { return m.summary().Cordoned != nil })
	if row := m.setting("WARM_IP_TARGET"); row.Source != "environment" || row.Label != nil {
		t.Errorf("setting %+v", row)
	}
	if m.addresses() != 2 {
		t.Errorf("%d addresses, want the variable's 2", m.addresses())
	}
}
