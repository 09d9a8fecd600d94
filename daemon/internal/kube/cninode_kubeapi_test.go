package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/cluster"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

var (
	sgp    = cluster.Feature{Name: cluster.FeatureSecurityGroupsForPods}
	custom = cluster.Feature{Name: cluster.FeatureCustomNetworking, Value: "a"}
)

// TestCNINode: the controller creates it late; from then on it is watched.
func TestCNINode(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNode(t, name)
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	rec := run(t, c)
	synced(t, c)
	if _, err := c.CNINode(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("before it is there: %v", err)
	}
	if err := c.AddFeatures(t.Context(), sgp); !errors.Is(err, ErrNotFound) {
		t.Errorf("adding to nothing: %v", err)
	}
	create(t, s, cniNodeResource, "CNINode", name, map[string]any{"tags": map[string]any{"a": "b"}})
	testenv.Eventually(t, "it is reported", rec.has(func(r *record) bool { return r.exists }))
	if err := c.AddFeatures(t.Context(), custom, sgp); err != nil {
		t.Fatal(err)
	}
	want := []cluster.Feature{custom, sgp}
	testenv.Eventually(t, "its features are reported", rec.has(func(r *record) bool { return cmp.Equal(r.cniNode.Features, want) }))
	if n, err := c.CNINode(t.Context()); err != nil || !cmp.Equal(n.Features, want) {
		t.Errorf("%+v, %v", n, err)
	}
	apply(t, s, cniNodeResource, "", name, `{"spec":{"features":[]}}`)
	testenv.Eventually(t, "that they are gone is reported", rec.has(func(r *record) bool { return len(r.cniNode.Features) == 0 }))
	if err := s.Objects().Resource(cniNodeResource).Delete(t.Context(), name, deleteNow); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "that it is gone is reported", rec.has(func(r *record) bool { return !r.exists }))
}

// TestFeatureObject: a feature without a value has none in the object, like upstream's.
func TestFeatureObject(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal([]featureObject{featureObject(sgp), featureObject(custom)})
	if want := `[{"name":"SecurityGroupsForPods"},{"name":"CustomNetworking","value":"` + custom.Value + `"}]`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// TestAddFeatures_NoWrite: existing features are not written again.
func TestAddFeatures_NoWrite(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	create(t, s, cniNodeResource, "CNINode", name, map[string]any{"features": []any{
		map[string]any{"name": sgp.Name}, map[string]any{"name": sgp.Name}, map[string]any{"name": custom.Name, "value": "a"},
	}})
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	count := counting(c)
	if err := c.AddFeatures(t.Context(), sgp, custom); err != nil || count.patches.Load() != 0 {
		t.Errorf("%v after %d writes", err, count.patches.Load())
	}
	changed := cluster.Feature{Name: custom.Name, Value: "b"}
	if err := c.AddFeatures(t.Context(), changed); err != nil || count.patches.Load() != 1 {
		t.Errorf("%v after %d writes", err, count.patches.Load())
	}
	if got, want := features(t, s, name), []cluster.Feature{sgp, sgp, changed}; !cmp.Equal(got, want) {
		t.Errorf("it has %v, want %v", got, want)
	}
}

// TestAddFeatures_TwoWriters: no feature is lost, although the whole list is written each
// time.
func TestAddFeatures_TwoWriters(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	const rounds = 10
	create(t, s, cniNodeResource, "CNINode", name, map[string]any{"tags": map[string]any{"a": "b"}})
	// Each reads, waits for the other's read, and so their writes conflict.
	var writers sync.WaitGroup
	barrier := make(chan struct{})
	var want []string
	for w := range 2 {
		c := connect(t, s.Kubeconfig(t, "aws-node"), name)
		for i := range rounds {
			want = append(want, fmt.Sprintf("F%d-%d", w, i))
		}
		writers.Go(func() {
			<-barrier
			for i := range rounds {
				if err := c.AddFeatures(t.Context(), cluster.Feature{Name: fmt.Sprintf("F%d-%d", w, i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	close(barrier)
	writers.Wait()
	var got []string
	for _, f := range features(t, s, name) {
		got = append(got, f.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("it has %v, want %v", got, want)
	}
}

// TestAddFeatures_OldCache: the watch lags; the write is refused and repeated.
func TestAddFeatures_OldCache(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	create(t, s, cniNodeResource, "CNINode", name, map[string]any{"tags": map[string]any{"a": "b"}})
	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	old, err := c.getCNINode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.cniNodes.set(name, old)
	apply(t, s, cniNodeResource, "", name, `{"spec":{"features":[{"name":"Later","value":"x"}]}}`)
	count := counting(c)
	if err := c.AddFeatures(t.Context(), sgp); err != nil || count.patches.Load() != 2 || count.gets.Load() != 1 {
		t.Errorf("%v after %d writes and %d reads, want 2 and 1", err, count.patches.Load(), count.gets.Load())
	}
	if got, want := features(t, s, name), []cluster.Feature{{Name: "Later", Value: "x"}, sgp}; !cmp.Equal(got, want) {
		t.Errorf("it has %v, want %v", got, want)
	}
	// If every write conflicts, it gives up with an error.
	n := 0
	before(c, "PATCH", func() {
		n++
		apply(t, s, cniNodeResource, "", name, fmt.Sprintf(`{"spec":{"tags":{"n":"%d"}}}`, n))
	})
	if err := c.AddFeatures(t.Context(), custom); err == nil || n != writeAttempts {
		t.Errorf("%v after %d attempts", err, n)
	}
}
