package main

import (
	"bytes"
	"strings"
	"testing"

	"cnictl/doctor/evidence/file"
)

// TestRun: the example of the help becomes an evidence file, and an error names the place.
func TestRun(t *testing.T) {
	t.Parallel()
	var help bytes.Buffer
	if err := run([]string{"-h"}, nil, nil, &help); err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(help.String(), "metrics:\n\n")
	example, _, _ = strings.Cut(example, "\n\n")
	example = strings.ReplaceAll("\n"+example, "\n  ", "\n")[1:]
	var out bytes.Buffer
	if err := run([]string{"-"}, strings.NewReader(example), &out, &help); err != nil {
		t.Fatalf("%v in\n%s", err, example)
	}
	ev, err := file.Load(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	r := ev.Nodes[0].First
	plain := strings.HasPrefix(out.String(), "schemaVersion: 2\n")
	if !plain || r.Metrics.Missing != "forbidden" || len(r.ENIs.Content) != 1 || ev.Nodes[0].Second == nil {
		t.Errorf("%+v in\n%s", ev, &out)
	}
	for _, row := range []struct{ in, want string }{
		{example + "\nworlds: {}\n", `unknown member "worlds"; known: schemaVersion, at, mode, base`},
		{strings.Replace(example, "available: 0", "available: none", 1), `-: line 5: world.subnets[0].available: want an integer`},
	} {
		if err := run([]string{"-"}, strings.NewReader(row.in), &out, &help); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, want %q", err, row.want)
		}
	}
	if err := run(nil, nil, &out, &help); err == nil || !strings.Contains(err.Error(), "want one FILE") {
		t.Error(err)
	}
}
