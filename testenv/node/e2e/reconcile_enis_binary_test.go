package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

const (
	tagInstance = "node.k8s.amazonaws.com/instance_id"
	tagNoManage = "node.k8s.amazonaws.com/no_manage"
)

// attachByHand creates an ENI and attaches it as an administrator does.
func (s watched) attachByHand(device int, spec fakeaws.ENISpec) fakeaws.ENI {
	s.t.Helper()
	spec.SubnetID, spec.Description = s.subnet.ID, "made by hand"
	if spec.Type != "efa-only" {
		spec.IPs = 3
	}
	e, err := s.world.CreateENI(spec)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: s.n.InstanceID, Device: device}); err != nil {
		s.t.Fatal(err)
	}
	e, _ = s.world.ENI(e.ID)
	return e
}

// managed returns the ENIs that the daemon treats as its own.
func (s watched) managed() (ids []string) {
	s.t.Helper()
	sum, _, err := s.c.Summary(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range sum.ENIs {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

// untaggedENIs are values of MANAGE_UNTAGGED_ENI. The nightly run has the other one, too.
var untaggedENIs = map[string]string{"untagged ones are managed": "true"}

// TestReconcile_ENIsAttachedByHand attaches ENIs of every kind to a running node: those whose
// tags make them the daemon's are set up and used, the others are not touched.
func TestReconcile_ENIsAttachedByHand(t *testing.T) {
	t.Parallel()
	type kind struct {
		name    string
		spec    func(instance string) fakeaws.ENISpec
		managed map[string]bool // by MANAGE_UNTAGGED_ENI
	}
	tagged := func(tags ...string) func(string) fakeaws.ENISpec {
		return func(instance string) fakeaws.ENISpec {
			all := map[string]string{}
			for i := 0; i < len(tags); i += 2 {
				all[tags[i]] = strings.ReplaceAll(tags[i+1], "own", instance)
			}
			return fakeaws.ENISpec{Tags: all}
		}
	}
	always, never, unless := map[string]bool{"true": true, "false": true}, map[string]bool{}, map[string]bool{"true": true}
	kinds := []kind{
		{"of this instance by its tag", tagged(tagInstance, "own"), always},
		{"without tags", tagged(), unless},
		{"marked no_manage", tagged(tagInstance, "own", tagNoManage, "true"), never},
		{"marked no_manage=false", tagged(tagNoManage, "false"), always},
		{"of another instance by its tag", tagged(tagInstance, "i-0fedcba9876543210"), unless},
		{"EFA", func(i string) fakeaws.ENISpec {
			return fakeaws.ENISpec{Type: "efa", Tags: map[string]string{tagInstance: i}}
		}, always},
		{"EFA only", func(i string) fakeaws.ENISpec {
			return fakeaws.ENISpec{Type: "efa-only", Tags: map[string]string{tagInstance: i}}
		}, never},
	}
	rowsAtOnce(t, untaggedENIs, func(t *testing.T, untagged string) {
		// The pool does not grow on its own: the slots are for the test's ENIs.
		s := newWatched(t, "c5n.18xlarge", map[string]string{"MANAGE_UNTAGGED_ENI": untagged, "WARM_IP_TARGET": "1", "IP_COOLDOWN_PERIOD": "1", "CNI_ADD_WAIT": "2s"})
		s.settled(s.n)
		want, others := s.managed(), 0
		byHand := map[string]fakeaws.ENI{}
		for i, k := range kinds {
			e := s.attachByHand(i+1, k.spec(s.n.InstanceID))
			byHand[k.name] = e
			if k.managed[untagged] {
				want = append(want, e.ID)
			} else {
				others++
			}
		}
		slices.Sort(want)
		s.within(noticedWithin, "the ENIs that are the daemon's to manage", func() bool { return fmt.Sprint(s.managed()) == fmt.Sprint(want) })
		sum, _, err := s.c.Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := *sum.Cards[0].OtherENIs; got != others {
			t.Errorf("%d ENIs that are others' are counted, want %d", got, others)
		}
		rules := s.ip(s.n, "rule")
		for _, k := range kinds {
			e := byHand[k.name]
			table := s.ip(s.n, "route", "show", "table", "all")
			set := strings.Contains(table, fmt.Sprintf("table %d ", e.Attachment.Device+1))
			if set != k.managed[untagged] {
				t.Errorf("%s: its routes are set up: %v, want %v:\n%s\n%s", k.name, set, k.managed[untagged], table, rules)
			}
			now, ok := s.world.ENI(e.ID)
			if !ok || !now.Attached() {
				t.Errorf("%s was taken off: %+v", k.name, now)
			}
			if !k.managed[untagged] && (fmt.Sprint(now.Tags) != fmt.Sprint(e.Tags) || fmt.Sprint(now.CIDRs()) != fmt.Sprint(e.CIDRs())) {
				t.Errorf("%s was changed: tags %v, addresses %v", k.name, now.Tags, now.CIDRs())
			}
			if k.managed[untagged] && k.name == "without tags" {
				testenv.Eventually(s.t, "the tags of an ENI that was adopted", func() bool {
					tags, _ := s.world.Tags(e.ID)
					return tags[tagInstance] == s.n.InstanceID
				})
			}
		}
		// Pods get the new ENI's addresses, and their traffic works.
		pods := s.mustAdd(s.n, "p", 10, 5)
		used := map[string]bool{}
		for _, p := range pods {
			owner, _ := s.world.OwnerOf(p.IP)
			used[owner.ID] = true
			if !slices.Contains(s.managed(), owner.ID) {
				t.Errorf("%s has %s of %s", p.Name, p.IP, owner.ID)
			}
			if err := s.n.Ping(p.IP, testenv.Left(t)); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
		if len(used) < 3 {
			t.Errorf("the pods are on %d ENIs", len(used))
		}
		for _, e := range s.events() {
			if e.Kind == "book-refused" || e.Kind == introspect.EventQuarantined {
				t.Errorf("event %+v", e)
			}
		}
		s.del(s.n, pods, 5)
		s.nothingLeft(s.n)
	})
}
