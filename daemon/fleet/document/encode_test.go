package document

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"
)

type inner struct {
	Name string `json:"name" null:"never"`
}

type sample struct {
	inner
	Known    string            `json:"known" null:"never"`
	Told     string            `json:"told"`
	Declared *string           `json:"declared"`
	Count    int               `json:"count"`
	Pods     int               `json:"pods" null:"zero"`
	At       time.Time         `json:"at"`
	Since    *time.Time        `json:"since"`
	Addr     netip.Addr        `json:"addr"`
	Range    netip.Prefix      `json:"range"`
	Words    []string          `json:"words"`
	Labels   map[string]string `json:"labels"`
	Part     *inner            `json:"part"`
	Left     string            `json:"left,omitempty"`
	Raw      json.RawMessage   `json:"raw"`
	Hidden   string            `json:"-"`
	private  int
}

func TestMarshal(t *testing.T) {
	t.Parallel()
	nothing, at := "", time.Date(2026, 11, 21, 15, 2, 11, 999, time.FixedZone("CET", 3600))
	for name, tt := range map[string]struct {
		doc  any
		want string
	}{
		"nothing": {sample{private: 1}, `{"name":"","known":"","told":null,"declared":null,"count":0,"pods":null,"at":null,"since":null,` +
			`"addr":null,"range":null,"words":null,"labels":null,"part":null,"raw":null}`},
		"all": {
			&sample{
				inner{"<a>"}, "b", "c", &nothing, 1, 2, at, &at, netip.MustParseAddr("10.0.0.1"), netip.MustParsePrefix("10.0.0.0/28"),
				[]string{"", "x"}, map[string]string{"z": "", "a": "\x1b"}, &inner{}, "left", json.RawMessage(`{"told": ""}`), "hidden", 1,
			},
			`{"name":"<a>","known":"b","told":"c","declared":"","count":1,"pods":2,"at":"2026-11-21T14:02:11Z","since":"2026-11-21T14:02:11Z",` +
				`"addr":"10.0.0.1","range":"10.0.0.0/28","words":["","x"],"labels":{"a":"\u001b","z":""},"part":{"name":""},"left":"left","raw":{"told":""}}`,
		},
		"empty list": {[]inner{}, `[]`},
		"none":       {nil, `null`},
		"any":        {map[string]any{"n": 1.5, "s": "", "l": []any{nil, true}}, `{"l":[null,true],"n":1.5,"s":""}`},
	} {
		got, err := Marshal(tt.doc)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s, %v", name, got, tt.want, err)
		}
	}
	if _, err := Marshal(map[string]any{"c": make(chan int)}); err == nil {
		t.Error("a channel is a document")
	}
}
