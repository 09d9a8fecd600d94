package bundle

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"cnictl/doctor/evidence/file"
)

// FuzzRead: any archive is either read or refused with a reason, and what was read can be
// saved.
func FuzzRead(f *testing.F) {
	f.Add(tarred(f, entry{name: "ipamd/enis.json", text: `{"0":{"TotalIPs":0,"AssignedIPs":0,"ENIs":{}}}`}, entry{name: "networking/iprule.txt", text: "512:\tfrom all to 10.0.0.12 lookup main\n"}))
	f.Add(tarred(f, entry{name: "var_log/aws-routed-eni/ipamd.log.gz", text: string(zipped(f, []byte(`{"level":"error","ts":"2026-11-20T01:02:00.000Z","msg":"x"}`)))}))
	f.Add(tarred(f, entry{name: "manifest.json", text: `{"kind":"EvidenceBundle"}`}, entry{name: "nodes/a/evidence.json", text: `{"schemaVersion":1,"at":"2026-11-21T12:00:00Z"}`}))
	f.Add(packed(f, entry{name: "eks_i-0a_2026-11-21_1201-UTC_0.7.9/cni/10-aws.conflist", text: "{}"}))
	f.Add(block("system/x", 'S', 0, 7<<30))
	f.Fuzz(func(t *testing.T, data []byte) {
		ev, _, err := Read(bytes.NewReader(data), "x")
		if err != nil {
			var refusal *Refusal
			if ev != nil || !errors.As(err, &refusal) {
				t.Fatalf("read %v, %v", ev, err)
			}
			return
		}
		if _, err := file.Save(ev); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzCollected: the same for an archive whose files all have the same text.
func FuzzCollected(f *testing.F) {
	for _, e := range written {
		f.Add(e.text)
	}
	f.Add(`{"version":"vpc-cni-ipam/1","allocations":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var entries []entry
		for _, name := range append(slices.Clone(kept), "cni/10-aws.conflist", "kubelet/kubelet.log", "var_log/aws-routed-eni/ipamd.log", "networking/systemd-network/a.link") {
			entries = append(entries, entry{name: name, text: text})
		}
		ev, _, err := Read(bytes.NewReader(tarred(t, entries...)), collectedName)
		if err != nil {
			var refusal *Refusal
			if !errors.As(err, &refusal) {
				t.Fatal(err)
			}
			return
		}
		saved, err := file.Save(ev)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Load(saved); err != nil {
			t.Fatalf("what was read cannot be loaded: %v\n%s", err, saved)
		}
	})
}
