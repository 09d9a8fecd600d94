package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"cnictl/testenv/kube/kubeapi"
)

// TestScript_KubeAPI runs the real main against a real API server with one node and no
// daemon. $UNKNOWN's credentials are not accepted. The user visitor has no rights.
func TestScript_KubeAPI(t *testing.T) {
	s := kubeapi.Start(t)
	node := s.CreateNode(t, s.Name(t)).Name
	for _, right := range []string{"list nodes", "list pods"} {
		s.ExpectDenied("visitor", right)
	}
	dir := t.TempDir()
	admin := s.Admin()
	unknown := rest.AnonymousClientConfig(admin)
	unknown.BearerToken = "eyJhbGciOiJub25lIn0.e30."
	kubeconfigs := map[string]string{"ADMIN": writeKubeconfig(t, dir, "admin", admin), "UNKNOWN": writeKubeconfig(t, dir, "unknown", unknown)}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/kubeapi",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for name, file := range kubeconfigs {
				env.Setenv(name, file)
			}
			env.Setenv("KUBECONFIG", kubeconfigs["ADMIN"])
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("NODE", node)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// writeKubeconfig writes credentials in kubectl's format and returns the file.
func writeKubeconfig(t *testing.T, dir, context string, c *rest.Config) string {
	t.Helper()
	file := filepath.Join(dir, context)
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{context: {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			context: {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken},
		},
		Contexts:       map[string]*clientcmdapi.Context{context: {Cluster: context, AuthInfo: context}},
		CurrentContext: context,
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTerminal_CannotStartKubeAPI is TestTerminal_CannotStart with a real API server.
func TestTerminal_CannotStartKubeAPI(t *testing.T) {
	s := kubeapi.Start(t)
	s.CreateNode(t, s.Name(t))
	visitor := rest.CopyConfig(s.Admin())
	unknown := rest.AnonymousClientConfig(s.Admin())
	unknown.BearerToken = "eyJhbGciOiJub25lIn0.e30."
	dir := t.TempDir()
	cannotStart(t, writeKubeconfig(t, dir, "unknown", unknown), refusal{"could not reach unknown", "the API server does not accept the credentials", "log in again"})
	cannotStart(t, writeKubeconfig(t, dir, "visitor", visitor),
		refusal{"could not list the nodes of visitor", "missing permissions: list nodes, watch nodes$", "kubectl auth can-i list nodes;"}, "--as=visitor")
}
