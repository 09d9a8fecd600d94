package kubeconfig

import (
	"os"
	"path/filepath"
	"testing"

	"cnictl/cmd/cnictl/internal/cli"
)

// TestNamespace: as in kubectl, --namespace overrides the namespace of the context, and
// default is the last resort.
func TestNamespace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"shop","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{}}],
		"contexts":[{"name":"shop","context":{"cluster":"c","user":"u","namespace":"shop"}},{"name":"plain","context":{"cluster":"c","user":"u"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		flags cli.KubeFlags
		want  string
	}{
		{cli.KubeFlags{Kubeconfig: file}, "shop"},
		{cli.KubeFlags{Kubeconfig: file, Namespace: "dev"}, "dev"},
		{cli.KubeFlags{Kubeconfig: file, Context: "plain"}, "default"},
		{cli.KubeFlags{Kubeconfig: file + ".not"}, "default"},
		{cli.KubeFlags{}, "default"},
	} {
		f := &cli.Factory{Env: func(string) (string, bool) { return "", false }}
		f.Globals.Kube = row.flags
		if got := Namespace(f); got != row.want {
			t.Errorf("%+v: %q, want %q", row.flags, got, row.want)
		}
	}
}
