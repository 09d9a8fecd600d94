package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // exec and OIDC credentials: EKS kubeconfigs run "aws eks get-token"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig is the way to an API server as kubectl finds it.
type kubeconfig struct {
	files  []string // looked at, in this order
	raw    clientcmdapi.Config
	config clientcmd.ClientConfig
}

// loadKubeconfig reads --kubeconfig, else the files of KUBECONFIG, else ~/.kube/config. It
// makes no connection and runs no program.
func (f *Factory) loadKubeconfig() (*kubeconfig, error) {
	k := &f.Globals.Kube
	var rules clientcmd.ClientConfigLoadingRules
	switch env, _ := f.Env("KUBECONFIG"); {
	case k.Kubeconfig != "":
		rules.ExplicitPath = k.Kubeconfig
		rules.Precedence = []string{k.Kubeconfig}
	case env != "":
		rules.Precedence = filepath.SplitList(env)
	default:
		if home, _ := f.Env("HOME"); home != "" {
			rules.Precedence = []string{filepath.Join(home, ".kube", "config")}
		}
	}
	raw, err := rules.Load()
	if err != nil {
		return nil, f.badKubeconfig(strings.Join(rules.Precedence, ", "), err)
	}
	return &kubeconfig{
		files: rules.Precedence, raw: *raw,
		config: clientcmd.NewNonInteractiveClientConfig(*raw, k.Context, k.overrides(), &rules),
	}, nil
}

func (f *Factory) badKubeconfig(files string, err error) error {
	e := &Error{Code: ExitUnreachable, What: "kubeconfig " + files + " cannot be used", Why: err.Error(), Do: "kubectl config view --minify"}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		e.Why = pathErr.Err.Error()
		e.Do = "aws eks update-kubeconfig --name CLUSTER, or --kubeconfig FILE"
	}
	return e
}

// overrides are what the flags say beside the file.
func (k *KubeFlags) overrides() *clientcmd.ConfigOverrides {
	o := &clientcmd.ConfigOverrides{CurrentContext: k.Context}
	o.Context.Cluster, o.Context.AuthInfo, o.Context.Namespace = k.Cluster, k.User, k.Namespace
	o.ClusterInfo.Server, o.ClusterInfo.TLSServerName = k.Server, k.TLSServerName
	o.ClusterInfo.CertificateAuthority = k.CertificateAuthority
	o.ClusterInfo.InsecureSkipTLSVerify, o.ClusterInfo.DisableCompression = k.InsecureSkipTLSVerify, k.DisableCompression
	o.AuthInfo.ClientCertificate, o.AuthInfo.ClientKey, o.AuthInfo.Token = k.ClientCertificate, k.ClientKey, k.Token
	o.AuthInfo.Impersonate, o.AuthInfo.ImpersonateUID, o.AuthInfo.ImpersonateGroups = k.As, k.AsUID, k.AsGroup
	for _, extra := range k.AsUserExtra {
		if key, value, ok := strings.Cut(extra, "="); ok {
			if o.AuthInfo.ImpersonateUserExtra == nil {
				o.AuthInfo.ImpersonateUserExtra = map[string][]string{}
			}
			o.AuthInfo.ImpersonateUserExtra[key] = append(o.AuthInfo.ImpersonateUserExtra[key], value)
		}
	}
	return o
}

// empty tells that nothing names an API server.
func (c *kubeconfig) empty(k *KubeFlags) bool {
	return len(c.raw.Contexts) == 0 && len(c.raw.Clusters) == 0 && k.Server == ""
}

// title names the cluster: the context, else the server.
func (c *kubeconfig) title(k *KubeFlags) string {
	switch {
	case k.Context != "":
		return k.Context
	case c.raw.CurrentContext != "":
		return c.raw.CurrentContext
	}
	return k.Server
}

// hasKubeconfig tells whether there is a way to an API server, reading no more than
// names of files.
func (f *Factory) hasKubeconfig() bool {
	if f.Globals.Kube.chosen() {
		return true
	}
	if env, _ := f.Env("KUBECONFIG"); env != "" {
		return true
	}
	home, _ := f.Env("HOME")
	if home == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(home, ".kube", "config"))
	return err == nil
}

// serviceAccountToken is there in a pod that may speak to its API server.
const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// inCluster tells whether this is a pod with an account of its own.
func (f *Factory) inCluster() bool {
	host, _ := f.Env("KUBERNETES_SERVICE_HOST")
	if host == "" {
		return false
	}
	_, err := os.Stat(serviceAccountToken)
	return err == nil
}

// API is the way to an API server.
type API struct {
	Rest      *rest.Config
	Title     string // of the cluster, for people
	Namespace string // of --namespace, else of the context, else "default"
	Given     bool   // the namespace was named by a flag
}

// API finds the API server and the credentials for it. It makes no connection and runs
// no program.
func (f *Factory) API() (API, error) {
	k := &f.Globals.Kube
	request, err := clientcmd.ParseTimeout(k.RequestTimeout)
	if err != nil {
		return API{}, Usage("--request-timeout=%s: accepted are 30s, 2m and the like", k.RequestTimeout)
	}
	c, err := f.loadKubeconfig()
	if err != nil {
		return API{}, err
	}
	api := API{Title: c.title(k), Given: k.Namespace != ""}
	if c.empty(k) {
		if !f.inCluster() {
			return API{}, f.noKubeconfig(c.files)
		}
		if api.Rest, err = rest.InClusterConfig(); err != nil {
			return API{}, f.badKubeconfig("of this pod", err)
		}
		api.Title, api.Namespace = "in-cluster", k.Namespace
	} else {
		if api.Rest, err = c.config.ClientConfig(); err != nil {
			return API{}, f.badKubeconfig(strings.Join(c.files, ", "), err)
		}
		if api.Namespace, _, err = c.config.Namespace(); err != nil {
			return API{}, f.badKubeconfig(strings.Join(c.files, ", "), err)
		}
	}
	if api.Namespace == "" {
		api.Namespace = "default"
	}
	api.Rest.UserAgent = f.UserAgent()
	if request > 0 {
		api.Rest.Wrap(boundRequests(request))
	}
	return api, nil
}

func (f *Factory) noKubeconfig(files []string) error {
	looked := strings.Join(files, ", ")
	if looked == "" {
		looked = "neither KUBECONFIG nor HOME is set"
	} else {
		looked = "no context in " + looked
	}
	return &Error{
		Code: ExitUnreachable, What: "no cluster to ask", Why: looked,
		Do: "aws eks update-kubeconfig --name CLUSTER; without a cluster: " + f.Name + " status --targets NAME=unix:/path,NAME=host:port",
	}
}

// UserAgent names the tool in requests.
func (f *Factory) UserAgent() string { return "cnictl/" + f.Version }
