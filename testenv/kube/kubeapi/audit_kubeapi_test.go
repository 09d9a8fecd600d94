package kubeapi

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// TestEnd_UnexpectedDenial: a refusal fails the test even if the client ignores it,
// unless the refusal was announced.
func TestEnd_UnexpectedDenial(t *testing.T) {
	s := Start(t)
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig(t, "aws-node"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.unexpectedDenials(); err != nil {
		t.Errorf("nothing was asked yet: %v", err)
	}
	_, err = client.Resource(kinds["ServiceAccount"].resource).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("list of ServiceAccounts: %v", err)
	}
	want := "aws-node may not list serviceaccounts"
	if err := s.unexpectedDenials(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	s.ExpectDenied("aws-node", "list serviceaccounts")
	if err := s.unexpectedDenials(); err != nil {
		t.Errorf("announced: %v", err)
	}
}
