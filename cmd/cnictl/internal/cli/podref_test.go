package cli

import (
	"testing"

	"cnictl/daemon/api/introspect"
)

func TestPod(t *testing.T) {
	t.Parallel()
	type ref = introspect.PodRef
	for _, row := range []struct {
		text, namespace, flag string
		want                  ref // empty: an error
	}{
		{"a/b", "", "", ref{Namespace: "a", Name: "b"}},
		{"pod/a/b", "", "", ref{Namespace: "a", Name: "b"}},
		{"pod/b", "", "", ref{}},
		{"b", "", "", ref{}},
		{"a/", "", "", ref{}},
		{"/b", "", "", ref{}},
		{"a/b/c", "", "", ref{}},
		{"a/b\x1b", "", "", ref{}},
		{"a /b", "", "", ref{}},
		{"b", "a", "", ref{Namespace: "a", Name: "b"}},
		{"pod/b", "a", "", ref{Namespace: "a", Name: "b"}},
		{"b", "pod", "pod", ref{Namespace: "pod", Name: "b"}},
		{"", "a", "", ref{}},
		{"/b", "a", "", ref{}},
		{"c/b", "a", "", ref{Namespace: "c", Name: "b"}}, // a default
		{"c/b", "a", "a", ref{}},                         // a contradiction
		{"a/b", "a", "a", ref{Namespace: "a", Name: "b"}},
	} {
		f := &Factory{sources: map[string]string{namespaceFlag: FromEnvironment}}
		f.Globals.Kube.Namespace = row.namespace
		if row.flag != "" {
			f.sources[namespaceFlag] = FromFlag
		}
		got, err := f.Pod(row.text, row.namespace)
		if got != row.want || (err == nil) != (row.want.Name != "") {
			t.Errorf("%+v: %+v, %v", row, got, err)
		}
	}
}
