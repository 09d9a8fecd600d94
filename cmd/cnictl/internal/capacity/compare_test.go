package capacity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/daemon/api/introspect"
)

// looks is a context that ends after a number of looks at it.
type looks struct {
	context.Context
	left *int
}

func (l looks) Err() error {
	if *l.left--; *l.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestCompare_Interrupted: the types that were compared are shown.
func TestCompare_Interrupted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	f := &cli.Factory{Streams: &cli.Streams{Out: &out, Err: &out}, Now: func() time.Time { return time.Unix(0, 0) }, Env: func(string) (string, bool) { return "", false }}
	f.Globals.Output = "json"
	o := &compareOptions{list: &output.List[placement]{Columns: fleetColumns(), Key: func(r placement) string { return r.InstanceType }, Item: func(r placement) any { return r }}}
	o.nodes.pods = 500
	left := 3
	err := o.run(looks{t.Context(), &left}, f, []string{"m5.*"})
	var e *cli.Error
	if !errors.As(err, &e) || e.Code != cli.ExitInterrupted || e.What != "interrupted: 3 of 9 types are compared" {
		t.Errorf("%v", err)
	}
	var doc introspect.CapacityComparison
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Items) != 3 || !doc.Partial {
		t.Errorf("%v\n%s", err, out.String())
	}
}
