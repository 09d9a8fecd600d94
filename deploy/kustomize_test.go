package deploy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"cnictl/deploy"
)

// TestKustomization: the base builds and equals the manifest.
func TestKustomization(t *testing.T) {
	t.Parallel()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), ".")
	if err != nil {
		t.Fatal(err)
	}
	want, err := deploy.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	var have []*unstructured.Unstructured
	for _, r := range built.Resources() {
		data, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		have = append(have, o)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("(-manifest +base):\n%s", diff)
	}
}
