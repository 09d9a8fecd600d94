package introspect

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestV1_RecordedBytes: each recorded document, decoded into our types and encoded again,
// has the same bytes.
func TestV1_RecordedBytes(t *testing.T) {
	t.Parallel()
	docs := map[string]func() any{
		"v1-enis.*.json":                      func() any { return &ENIs{} },
		"v1-networkutils-env-settings.*.json": func() any { return &NetworkEnv{} },
		"v1-ipamd-env-settings.*.json":        func() any { return &IPAMEnv{} },
		"unknown-path.*.json":                 func() any { return &Commands{} },
		"v1-eni-configs.*.txt":                func() any { return new(string) },
	}
	for pattern, zero := range docs {
		files, err := filepath.Glob("testdata/recorded/*/" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			v := zero()
			dec := json.NewDecoder(bytes.NewReader(want))
			dec.DisallowUnknownFields()
			if err := dec.Decode(v); err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			got, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s:\n got %s\nwant %s", file, got, want)
			}
		}
	}
}
