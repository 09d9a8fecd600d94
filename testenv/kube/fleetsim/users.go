package fleetsim

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	adminName   = "fleetsim-admin"
	clusterName = "fleetsim"
)

// user is a token's owner.
type user struct {
	name   string
	denied map[string]bool // "verb resource[/subresource]"; everything else is allowed
	bound  []grant         // if not nil, only what these allow is allowed
}

// users are the valid bearer tokens.
type users struct {
	mu sync.Mutex // guards of
	of map[string]user
}

// add adds a user and returns the user's token.
func (u *users) add(name string, denied ...string) string {
	who := user{name: name, denied: map[string]bool{}}
	for _, d := range denied {
		who.denied[d] = true
	}
	return u.register(who)
}

func (u *users) register(who user) string {
	token := newToken()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of[token] = who
	return token
}

// ask returns the user who sent a request.
func (u *users) ask(r *http.Request) (user, bool) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return user{}, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	who, ok := u.of[token]
	return who, ok
}

// may reports whether the user may do something.
func (u user) may(a access) bool {
	if u.bound != nil {
		return slices.ContainsFunc(u.bound, func(g grant) bool { return g.allows(a) })
	}
	return !u.denied[a.verb+" "+a.resource] && !u.denied["* "+a.resource] && !u.denied[a.verb+" *"]
}

// RESTConfig returns client-go's configuration for the administrator.
func (s *Sim) RESTConfig() *rest.Config {
	return &rest.Config{Host: s.url, BearerToken: s.admin, TLSClientConfig: rest.TLSClientConfig{CAData: s.identity.caPEM}}
}

// Kubeconfig returns the administrator's kubeconfig.
func (s *Sim) Kubeconfig() []byte { return s.kubeconfig(adminName, s.admin) }

// KubeconfigOf returns the kubeconfig of a user who may do everything except what is denied:
// "verb resource[/subresource]", where either word may be *.
func (s *Sim) KubeconfigOf(name string, denied ...string) []byte {
	return s.kubeconfig(name, s.users.add(name, denied...))
}

// KubeconfigWith returns the kubeconfig of a user who may do only what Roles and ClusterRoles
// grant, each bound in its own namespace.
func (s *Sim) KubeconfigWith(name string, roles ...*unstructured.Unstructured) ([]byte, error) {
	bound, err := grants(roles)
	if err != nil {
		return nil, err
	}
	return s.kubeconfig(name, s.users.register(user{name: name, bound: append([]grant{}, bound...)})), nil
}

// KubeconfigExpired returns a kubeconfig with an invalid token.
func (s *Sim) KubeconfigExpired() []byte { return s.kubeconfig("expired", newToken()) }

func (s *Sim) kubeconfig(name, token string) []byte {
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters[clusterName] = &clientcmdapi.Cluster{Server: s.url, CertificateAuthorityData: s.identity.caPEM}
	cfg.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	cfg.Contexts[clusterName] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: name, Namespace: "default"}
	cfg.CurrentContext = clusterName
	out, err := clientcmd.Write(*cfg)
	if err != nil {
		panic(fmt.Sprintf("encode a kubeconfig: %v", err)) // only unknown types can fail
	}
	return out
}

// WriteKubeconfig writes the administrator's kubeconfig into a directory and returns
// the file's path.
func (s *Sim) WriteKubeconfig(dir string) (string, error) {
	path := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(path, s.Kubeconfig(), 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, nil
}
