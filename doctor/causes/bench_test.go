package causes

import (
	"testing"

	"cnictl/testenv/situation"
	"cnictl/testenv/situation/corpus"
)

// BenchmarkDiagnose_Fleet: a thousand nodes seen from a laptop, forty of them with a full subnet.
func BenchmarkDiagnose_Fleet(b *testing.B) {
	ev, err := situation.Load([]byte(`schemaVersion: 1
at: 2026-11-21T14:02:11Z
base: healthy
mode: laptop
once: true
scope: {cluster: true}
nodes:
  - {count: 960, world: {node: worker}}
  - count: 40
    world: {node: full, subnets: [{id: subnet-a, available: 0}], enis: [{id: eni-a, ips: 9, assigned: 9}]}
`))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r := Diagnose(ev, Options{})
		if len(r.Findings) != 1 || len(r.Findings[0].Nodes) != 40 {
			b.Fatal(corpus.Printed(r))
		}
	}
}
