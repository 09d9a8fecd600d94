package branch_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnictl/testenv"
	"cnictl/testenv/aws/vpcrc"
)

// allWhileDeleted is set at night. For every commit one row of TestBranch_TakenAway shows that a pod
// that is being deleted is looked after like any other.
var allWhileDeleted bool

// TestBranch_TakenAway: whatever other programs remove from pods with branch ENIs is restored,
// also for a pod that is being deleted and still serves.
func TestBranch_TakenAway(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, mode := range []string{strict, standard} {
		m, other := l.join(mode, vpcrc.Faults{}), l.host()
		p := m.run("p-" + mode)
		paths := []pair{{"pod", p, other.Primary.PrimaryIP}, {"to pod", other, p.IP}}
		l.reaches(mode, paths...)
		state := func() []string {
			lines := strings.Split(m.ip("rule")+m.ip("route", "show", "table", p.table())+m.ip("-br", "link", "show", "type", "vlan"), "\n")
			slices.Sort(lines)
			return lines
		}
		want := state()
		rows := []struct{ what, take string }{
			{"routes of the device", "ip route flush table " + p.table()},
			{"the device", "ip link del " + p.device()},
			{"the rules of the pod", "ip rule del priority 512 to " + p.IP.String() + "; ip rule del priority 1536 from " + p.IP.String()},
		}
		if mode == strict {
			rows[2].take = "ip rule del priority 10; ip rule del priority 10"
			rows = append(rows, struct{ what, take string }{"the rule of the node's own addresses", "ip rule del priority 20; ip rule add priority 0 lookup local"})
		}
		m.looked()
		takeAll := func(when string) {
			t.Helper()
			for _, row := range rows {
				m.exec("sh", "-euc", row.take)
				testenv.EventuallyErr(t, fmt.Sprintf("%s, %s, %s to be back", mode, when, row.what), func() error {
					if have := state(); !slices.Equal(have, want) {
						return fmt.Errorf("(-want +have):\n%s", cmp.Diff(want, have))
					}
					return nil
				})
				l.reaches(mode+" "+when+" after "+row.what, paths...)
			}
		}
		takeAll("while it runs")
		p.beginEnd()
		if !allWhileDeleted {
			rows = rows[:1]
		}
		takeAll("while it is being deleted")
		m.end(p)
		m.nothingLeft()
	}
}

// looked waits for the daemon's next check of the node: it restores a pod's state only after it
// has seen the pod complete.
func (m *member) looked() {
	m.l.t.Helper()
	at := time.Now()
	testenv.Eventually(m.l.t, "a look at the node", func() bool {
		text, err := os.ReadFile(filepath.Join(m.Dir, "log", "ipamd.log"))
		if err != nil {
			m.l.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var look struct {
				TS  time.Time `json:"ts"`
				Msg string    `json:"msg"`
			}
			if json.Unmarshal([]byte(line), &look) == nil && look.Msg == "host network state checked" && look.TS.After(at) {
				return true
			}
		}
		return false
	})
}

// beginEnd deletes a pod with a long grace period and waits until the API server shows that.
func (p *branchPod) beginEnd() {
	p.m.l.t.Helper()
	pods := p.m.l.api.Objects().Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(p.bound.Namespace)
	grace := int64(1800)
	if err := pods.Delete(p.m.l.t.Context(), p.bound.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		p.m.l.t.Fatal(err)
	}
	testenv.Eventually(p.m.l.t, "a pod that is being deleted", func() bool {
		o, err := pods.Get(p.m.l.t.Context(), p.bound.Name, metav1.GetOptions{})
		if err != nil {
			p.m.l.t.Fatal(err)
		}
		return o.GetDeletionTimestamp() != nil
	})
}
