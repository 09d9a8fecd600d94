package capacity

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// cacheOf returns a cache of the given types.
func cacheOf(t testing.TB, read ...limits.Instance) []byte {
	t.Helper()
	doc := document.CapacityRefresh{APIVersion: introspect.APIVersion, Kind: document.KindCapacityRefresh, SampledAt: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)}
	for _, i := range read {
		doc.Items = append(doc.Items, factsOf(i))
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestCache_EveryType: the cache holds every type exactly as it was read.
func TestCache_EveryType(t *testing.T) {
	t.Parallel()
	var read []limits.Instance
	for name := range limits.Types() {
		i, _ := limits.Lookup(name)
		read = append(read, i)
	}
	known, err := parseCache(cacheOf(t, read...))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range read {
		if got, _ := known.Lookup(want.Type); !known.Read(want.Type) || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %s", want.Type, cmp.Diff(want, got))
		}
	}
}

// FuzzCache: a cache is used only if its facts are plausible.
func FuzzCache(f *testing.F) {
	m5, _ := limits.Lookup("m5.large")
	ie, _ := limits.Lookup("i7ie.48xlarge")
	f.Add(cacheOf(f))
	f.Add(cacheOf(f, m5, ie))
	f.Add([]byte(`{"apiVersion":"cnictl/v1alpha1","kind":"CapacityRefresh","sampledAt":"2027-01-01T00:00:00Z","items":[{"instanceType":"m5.large","enis":-1}]}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		known, err := parseCache(text)
		if (err == nil) == known.at.IsZero() {
			t.Fatalf("%v with %v", err, known.at)
		}
		for name := range known.Types() {
			i, ok := known.Lookup(name)
			if !ok || i.Type != name || i.Check() != nil {
				t.Fatalf("%q: %+v", name, i)
			}
		}
	})
}
