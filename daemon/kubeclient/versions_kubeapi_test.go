package kubeclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnictl/testenv/kube/kubeapi"
)

// TestFollower_VersionGone: the API server has forgotten the version from which a watch
// continues, or never had it, as after a restore from a backup.
func TestFollower_VersionGone(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	resource := s.Objects().Resource(schema.GroupVersionResource{Group: CNINodes.Group, Version: CNINodes.Version, Resource: CNINodes.Plural})
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": CNINodes.Group + "/" + CNINodes.Version, "kind": "CNINode", "metadata": map[string]any{"name": name}, "spec": map[string]any{},
	}}
	if _, err := resource.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err := Config(s.Kubeconfig(t, "aws-node"), "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, version string
		listed        bool
	}{
		{"forgotten", "1", true},
		{"of the future, to watch", "9000000000000", true},
		{"of the future, to list", "9000000000000", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			listed := false
			f := following(client, name)
			f.version, f.listed = tc.version, tc.listed
			f.Begin = func() (func(metav1.PartialObjectMetadata), func()) {
				return func(o metav1.PartialObjectMetadata) { listed = listed || o.Name == name }, func() {}
			}
			f.Watching = func(open bool) {
				if open && listed {
					cancel()
				}
			}
			if tc.name == "of the future, to watch" {
				// Nothing is delivered and nothing fails: what helps is that a list follows
				// an outage, which precedes every restore.
				f.lastGood = f.lastGood.AddDate(2000, 0, 0)
				f.plan(errors.New("connection refused"))
				if f.listed {
					t.Fatal("a long outage is not followed by a list")
				}
			}
			if err := f.Run(ctx); err != nil || !listed {
				t.Fatalf("listed: %v; %v", listed, err)
			}
			if f.version == tc.version || f.fresh {
				t.Errorf("version %s, fresh %v", f.version, f.fresh)
			}
		})
	}
}

// following follows one CNINode.
func following(c *Client, name string) *Follower[metav1.PartialObjectMetadata] {
	nothing := func(metav1.PartialObjectMetadata) error { return nil }
	return &Follower[metav1.PartialObjectMetadata]{
		Open: func(ctx context.Context, verb string, r Request, q url.Values) (io.ReadCloser, error) {
			resp, err := c.Do(ctx, http.MethodGet, r.Kind.Path(r.Namespace), q, "application/json", nil)
			if err != nil || resp.StatusCode == http.StatusOK {
				return resp.Body, err
			}
			defer resp.Body.Close()
			refused := &apierrors.StatusError{}
			return nil, errors.Join(json.NewDecoder(resp.Body).Decode(&refused.ErrStatus), fmt.Errorf("%s: %w", verb, refused))
		},
		Request: Request{Kind: CNINodes, Selection: Selection{Fields: "metadata.name=" + name}},
		Limits:  Limits{Objects: 10, Within: time.Minute}, Backoff: Backoff{First: 20 * time.Millisecond, Max: 200 * time.Millisecond},
		Cached: true, Set: nothing, Unset: nothing, Failed: func(Failure) error { return nil },
	}
}
