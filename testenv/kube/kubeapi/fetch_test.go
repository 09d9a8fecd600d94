package kubeapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"cnictl/testenv/kube/kubeapi"
)

// wantColumns requests a resource in the table format that kubectl prints.
func wantColumns(t *testing.T, s *kubeapi.Server, r schema.GroupVersionResource, want ...string) {
	t.Helper()
	var table struct{ ColumnDefinitions []struct{ Name string } }
	fetch(t, s, "/apis/"+r.GroupVersion().String()+"/"+r.Resource, "application/json;as=Table;v=v1;g=meta.k8s.io", &table)
	var have []string
	for _, c := range table.ColumnDefinitions {
		have = append(have, c.Name)
	}
	if !slices.Equal(have, want) {
		t.Errorf("columns of %s: %q, want %q", r.Resource, have, want)
	}
}

// fetch decodes the administrator's response for a path.
func fetch(t *testing.T, s *kubeapi.Server, path, accept string, into any) {
	t.Helper()
	client, err := rest.HTTPClientFor(s.Admin())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Admin().Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("decode %s: %v: %s", path, err, body)
	}
}
