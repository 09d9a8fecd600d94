package kubeapi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"cnictl/deploy"
)

const systemNamespace = "kube-system"

// right is a verb on a core resource.
type right struct{ verb, resource string }

// users are the ServiceAccounts that Kubeconfig accepts: the files of deploy/rbac that
// grant the rights, and one right from the last of them.
var users = map[string]struct {
	files []string
	last  right
}{
	"aws-node":           {[]string{"aws-node"}, right{"list", "pods"}},
	"cni-metrics-helper": {[]string{"cni-metrics-helper"}, right{"list", "pods"}},
	// In a cluster, one ServiceAccount has both. Here they must stay apart, or every test
	// would have the right to annotate.
	"aws-node-annotate": {[]string{"aws-node", "aws-node-annotate"}, right{"patch", "pods"}},
}

// userName returns the API server's name for a ServiceAccount.
func userName(account string) string {
	return "system:serviceaccount:" + systemNamespace + ":" + account
}

// rolesOfUsers returns the roles of deploy/rbac, bound to each user.
func rolesOfUsers() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for name, user := range users {
		out = append(out, serviceAccount(name))
		for _, file := range user.files {
			objects, err := deploy.RBAC(file)
			if err != nil {
				return nil, fmt.Errorf("read roles of %s: %w", name, err)
			}
			for _, o := range objects {
				switch o.GetKind() {
				case "ClusterRole", "Role":
					out = append(out, o)
				case "ClusterRoleBinding", "RoleBinding":
					out = append(out, bindTo(o, name))
				}
			}
		}
	}
	return out, nil
}

func serviceAccount(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("ServiceAccount")
	o.SetName(name)
	o.SetNamespace(systemNamespace)
	return o
}

// bindTo rebinds a binding's role to a user, leaving the role's other users alone.
func bindTo(binding *unstructured.Unstructured, user string) *unstructured.Unstructured {
	o := binding.DeepCopy()
	o.SetName(user + "." + binding.GetName())
	o.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": user, "namespace": systemNamespace}}
	return o
}

// tokenSeconds outlasts every test.
const tokenSeconds = 24 * 60 * 60

// Token returns a token of a ServiceAccount: "aws-node", "aws-node-annotate" (aws-node where
// ANNOTATE_POD_IP is on) or "cni-metrics-helper". It has exactly the rights that deploy/rbac
// grants.
func (s *Server) Token(t testing.TB, user string) string {
	t.Helper()
	if _, ok := users[user]; !ok {
		t.Fatalf("kubeapi: no user %q", user)
	}
	token, err := s.token(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (s *Server) token(ctx context.Context, user string) (string, error) {
	accounts, err := s.of("ServiceAccount", systemNamespace)
	if err != nil {
		return "", err
	}
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1",
		"kind":       "TokenRequest",
		"metadata":   map[string]any{"name": user},
		"spec":       map[string]any{"expirationSeconds": int64(tokenSeconds)},
	}}
	answer, err := accounts.Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		return "", fmt.Errorf("request token of %s: %w", user, err)
	}
	token, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	if token == "" {
		return "", fmt.Errorf("request token of %s: the answer has none", user)
	}
	return token, nil
}

// Kubeconfig writes a kubeconfig of a user (see Token) and returns its path.
func (s *Server) Kubeconfig(t testing.TB, user string) string {
	t.Helper()
	return s.kubeconfig(t, user, s.Endpoint())
}

// kubeconfig writes a kubeconfig with a different server address.
func (s *Server) kubeconfig(t testing.TB, user, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := s.WriteKubeconfig(t.Context(), path, user, address); err != nil {
		t.Fatal(err)
	}
	return path
}

// WriteKubeconfig writes a kubeconfig of a user (see Token) to a file. address is the
// server's Endpoint or that of a proxy.
func (s *Server) WriteKubeconfig(ctx context.Context, path, user, address string) error {
	if _, ok := users[user]; !ok {
		return fmt.Errorf("write kubeconfig: no user %q", user)
	}
	token, err := s.token(ctx, user)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{
		Server:                   "https://" + address,
		TLSServerName:            "localhost", // whatever the address
		CertificateAuthorityData: s.admin.CAData,
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: user}
	config.CurrentContext = "test"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
