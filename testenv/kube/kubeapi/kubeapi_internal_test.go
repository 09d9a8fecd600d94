package kubeapi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDenial(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ event, want string }{
		{`{"verb":"patch","requestURI":"/api/v1/x","user":{"username":"system:serviceaccount:kube-system:aws-node"},"objectRef":{"resource":"pods"}}`,
			"aws-node may not patch pods"},
		{`{"verb":"get","requestURI":"/apis/x","user":{"username":"system:serviceaccount:other:a"},"objectRef":{"resource":"cninodes","apiGroup":"vpcresources.k8s.aws","subresource":"status"}}`,
			"system:serviceaccount:other:a may not get cninodes/status.vpcresources.k8s.aws"},
		{`{"verb":"get","requestURI":"/metrics?x=y","user":{"username":"u"}}`, "u may not get /metrics"},
	} {
		var e auditEvent
		if err := json.Unmarshal([]byte(tc.event), &e); err != nil {
			t.Fatal(err)
		}
		if got := e.denial().String(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// TestUnexpectedDenials: only unannounced denials are errors.
func TestUnexpectedDenials(t *testing.T) {
	t.Parallel()
	s := &Server{dir: t.TempDir()}
	if err := s.unexpectedDenials(); err != nil {
		t.Errorf("without a log: %v", err)
	}
	line := func(decision, verb string) string {
		return `{"verb":"` + verb + `","user":{"username":"system:serviceaccount:kube-system:aws-node"},"objectRef":{"resource":"pods"},"responseStatus":{"metadata":{},"code":403},"annotations":{"authorization.k8s.io/decision":"` + decision + `"}}` + "\n"
	}
	log := line("allow", "list") + line("forbid", "patch") + line("forbid", "delete") + line("forbid", "patch")
	if err := os.WriteFile(filepath.Join(s.dir, auditLogFile), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ExpectDenied("aws-node", "delete pods")
	s.ExpectDenied("cni-metrics-helper", "patch pods")
	err := s.unexpectedDenials()
	if want := "aws-node may not patch pods: deploy/rbac does not grant it"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestUnexpectedUses: using a right that deploy/rbac marks as unused is an error.
func TestUnexpectedUses(t *testing.T) {
	t.Parallel()
	s := &Server{dir: t.TempDir()}
	line := func(user, decision, verb, resource string) string {
		return `{"verb":"` + verb + `","user":{"username":"system:serviceaccount:kube-system:` + user + `"},"objectRef":{"resource":"` + resource + `"},"annotations":{"authorization.k8s.io/decision":"` + decision + `"}}` + "\n"
	}
	log := line("aws-node", "allow", "list", "pods") + line("aws-node", "allow", "get", "pods") + line("aws-node", "forbid", "delete", "pods") +
		line("cni-metrics-helper", "allow", "list", "namespaces") + line("aws-node", "allow", "list", "pods")
	path := filepath.Join(s.dir, auditLogFile)
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	used, err := s.Used("aws-node")
	if want := []string{"get pods", "list pods"}; err != nil || !slices.Equal(used, want) {
		t.Errorf("used are %q, %v, want %q", used, err, want)
	}
	if err := s.unexpectedUses(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte(log+line("aws-node", "allow", "list", "namespaces")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.unexpectedUses(); err == nil || !strings.Contains(err.Error(), `aws-node used "list namespaces"`) {
		t.Errorf("a use of what is unused: %v", err)
	}
}
