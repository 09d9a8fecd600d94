// These tests save evidence read from hostile input and load it again. doctor/evidence/file imports this
// package, so the tests are outside it.
package reading_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
)

// FuzzDocuments: the evidence from any answer of a node can be saved and loaded.
func FuzzDocuments(f *testing.F) {
	files, _ := filepath.Glob("../../../daemon/api/introspect/testdata/shapes/*.json")
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"kind":"NodeSummary","cards":[]}`))
	f.Add([]byte("awscni_eni_max{a=\"b\"} 3\nprocess_start_time_seconds 5"))
	f.Add([]byte(`{"version":"vpc-cni-ipam/1","allocations":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &evidence.Reading{At: time.Unix(1_790_000_000, 0).UTC()}
		a := reading.Answer{Status: 200, Body: body}
		reading.Documents(r, map[string]reading.Answer{
			introspect.PathENIs: a, introspect.PathENIConfigs: a, introspect.PathIPAMEnv: a, introspect.PathNetworkEnv: a, introspect.PathSummary: a,
		})
		r.Metrics = reading.Source(reading.Metrics(body))
		r.Checkpoint = reading.Source(reading.Checkpoint("ipam.json", body, nil))
		saved, err := file.Save(&evidence.Evidence{At: r.At, Mode: evidence.ModeLaptop, Nodes: []evidence.Node{{Name: "n", First: r}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Load(saved); err != nil {
			t.Fatalf("%v of\n%s", err, saved)
		}
	})
}
