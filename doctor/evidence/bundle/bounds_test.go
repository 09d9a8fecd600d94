package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"cnictl/doctor/evidence"
)

// TestRead_Held: small files that take much memory are refused before it is taken.
func TestRead_Held(t *testing.T) {
	t.Parallel()
	const each, most = 5_000, 8 << 20
	entries := []entry{{name: manifestName, text: `{"kind":"EvidenceBundle"}`}}
	for i := range 40 {
		text := "schemaVersion: 1\nat: 2026-11-21T12:00:00Z\nsources: {k8s.evt: [" + strings.Repeat("{},", each) + "]}\n"
		entries = append(entries, entry{name: evidenceName(fmt.Sprint("n", i)), text: text})
	}
	b := &reader{collector: newCollector(""), most: most}
	err := b.walk(bytes.NewReader(packed(t, entries...)), b.visit)
	var refusal *Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Why, "more than 8 MiB") {
		t.Errorf("%d files of %d events each: %v", len(entries)-1, each, err)
	}
	if most := most / (each * int(reflect.TypeFor[evidence.KubeEvent]().Size())); len(b.nodes) > most {
		t.Errorf("%d nodes are held, want at most %d", len(b.nodes), most)
	}
}

// TestHeld compares the estimate with what the memory allocator says.
func TestHeld(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ev := &evidence.Evidence{Nodes: []evidence.Node{{First: &evidence.Reading{}}}}
	for i := range 20_000 {
		p := evidence.KubePod{
			Pod: evidence.Pod(fmt.Sprint("namespace/pod-", i)), Labels: map[string]string{"a": "b"}, CreatedAt: time.Unix(0, 0),
			Containers: []evidence.Container{{Name: fmt.Sprint("c", i)}},
		}
		ev.Nodes[0].First.Pods.Content = append(ev.Nodes[0].First.Pods.Content, p)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if is, want := held(reflect.ValueOf(ev)), int(after.HeapAlloc-before.HeapAlloc); is < want/3 || is > want*3 {
		t.Errorf("%d bytes are held, estimated as %d", want, is)
	}
	runtime.KeepAlive(ev)
}

// TestWrite_ReadAgain: whatever is written is read again, also where logs compress so well that
// many of them fit the archive; their oldest lines are dropped then.
func TestWrite_ReadAgain(t *testing.T) {
	t.Parallel()
	const nodes, most = 4, 5 << 18
	one := healthy(t, "").Nodes[0]
	one.Second = nil
	for i := range 2_000 {
		line := evidence.Line{At: noon.Add(time.Duration(i-3000) * time.Second), Level: "error", Msg: strings.Repeat("no address ", 20)}
		one.First.LogIPAMD.Content.Lines = append(one.First.LogIPAMD.Content.Lines, line)
	}
	ev := healthy(t, "")
	ev.Nodes = nil
	for i := range nodes {
		n := one
		n.Name = fmt.Sprint("node-", i)
		ev.Nodes = append(ev.Nodes, n)
	}
	var b bytes.Buffer
	m, err := Write(&b, ev, Options{evidence: most / 10 * 9})
	if err != nil {
		t.Fatal(err)
	}
	if m.Nodes[0].Dropped["log.ipamd"] == 0 {
		t.Errorf("nothing was dropped: %+v", m.Nodes[0])
	}
	got, notes, err := read(bytes.NewReader(b.Bytes()), "", most)
	if err != nil || len(notes) > 0 || len(got.Nodes) != len(ev.Nodes) || len(got.Nodes[nodes-1].First.LogIPAMD.Content.Lines) == 0 {
		t.Fatalf("%v, %v", err, notes)
	}
	_, err = Write(&b, ev, Options{evidence: nodes * 10 << 10})
	if err == nil || !strings.Contains(err.Error(), "to be read again: choose fewer nodes") {
		t.Errorf("more than fits: %v", err)
	}
}
