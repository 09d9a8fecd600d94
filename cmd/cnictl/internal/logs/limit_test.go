package logs

import (
	"bytes"
	"strings"
	"testing"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/document"
)

func TestShare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tail, limit, nodes, want int }{
		{200, 10_000, 1, 200},
		{200, 50, 1, 50},
		{200, 10_000, 100, 200},
		{200, 10_000, 400, 100},
		{200, 10_000, 5000, 8},
		{200, 10, 5000, 1},
		{5, 10_000, 400, 5},
	} {
		o := Options{Tail: tt.tail, Limit: tt.limit}
		if got := o.share(tt.nodes); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

func TestNewest_SaysOnceWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	r := reader{f: &cli.Factory{Streams: &cli.Streams{Err: &said}}, opts: &Options{Limit: 2}, names: []string{"a", "b"}}
	all := []document.LogItem{{Line: "1"}, {Line: "2"}, {Line: "3"}}
	if got := r.newest(all[:2]); len(got) != 2 || said.Len() > 0 {
		t.Errorf("%v, %q", got, said.String())
	}
	for range 2 {
		if got := r.newest(all); len(got) != 2 || got[0].Line != "2" {
			t.Errorf("%v", got)
		}
	}
	if want := "only the newest 2 lines of 2 nodes are shown"; strings.Count(said.String(), want) != 1 {
		t.Errorf("%q", said.String())
	}
}
