package ipamd

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"cnictl/daemon/config"
	"cnictl/daemon/internal/kube"
)

// TestNewKubernetes_Unusable: without a way to the API server the ordinary modes go on, and
// those that need it do not start: security groups would be those of the node.
func TestNewKubernetes_Unusable(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	for _, row := range []struct {
		name  string
		c     config.Config
		fails []string // what the error says; none: there is no client, and no error
	}{
		{"no mode", config.Config{}, nil},
		{"no mode, mistyped", config.Config{Kubeconfig: missing}, nil},
		{"pod ENIs", config.Config{PodENI: true}, []string{"ENABLE_POD_ENI", kube.ErrNotConfigured.Error(), "set KUBECONFIG"}},
		{"pod ENIs, mistyped", config.Config{PodENI: true, Kubeconfig: missing}, []string{"ENABLE_POD_ENI", missing}},
		{"custom networking", config.Config{CustomNetworking: true}, []string{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"}},
		{"annotations", config.Config{AnnotatePodIP: true}, []string{"ANNOTATE_POD_IP"}},
		{"two of them", config.Config{PodENI: true, AnnotatePodIP: true}, []string{"ENABLE_POD_ENI, ANNOTATE_POD_IP"}},
	} {
		api, err := newKubernetes(Deps{Config: row.c}, slog.New(slog.DiscardHandler))
		if api != nil || (err == nil) != (len(row.fails) == 0) {
			t.Errorf("%s: %v, %v", row.name, api, err)
			continue
		}
		for _, want := range row.fails {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", row.name, err, want)
			}
		}
		if row.name == "pod ENIs" && !errors.Is(err, kube.ErrNotConfigured) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
