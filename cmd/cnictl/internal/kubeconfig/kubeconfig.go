package kubeconfig

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/human"
)

// File is the kubeconfig as kubectl finds it.
type File struct {
	Raw clientcmdapi.Config

	files  []string // searched in this order
	config clientcmd.ClientConfig
	flags  *cli.KubeFlags
}

// Load reads --kubeconfig, else the files of KUBECONFIG, else ~/.kube/config. It makes no
// connection and runs no program.
func Load(f *cli.Factory) (*File, error) {
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
		return nil, bad(strings.Join(rules.Precedence, ", "), err)
	}
	return &File{
		Raw: *raw, files: rules.Precedence, flags: k,
		config: clientcmd.NewNonInteractiveClientConfig(*raw, k.Context, overrides(k), &rules),
	}, nil
}

// overrides returns what the flags override in the file.
func overrides(k *cli.KubeFlags) *clientcmd.ConfigOverrides {
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

// empty reports whether nothing names an API server.
func (c *File) empty() bool {
	return len(c.Raw.Contexts) == 0 && len(c.Raw.Clusters) == 0 && c.flags.Server == ""
}

// Title names the cluster: the context, else the server.
func (c *File) Title() string {
	k := c.flags
	switch {
	case k.Context != "":
		return k.Context
	case c.Raw.CurrentContext != "":
		return c.Raw.CurrentContext
	}
	return k.Server
}

// Contexts returns the sorted names of the contexts.
func (c *File) Contexts() []string {
	return slices.SortedFunc(maps.Keys(c.Raw.Contexts), human.Natural)
}

// Switched returns f with another context of its kubeconfig, without the flags for the
// cluster and nodes of the first one.
func Switched(f *cli.Factory, context string) *cli.Factory {
	g := *f
	k := &g.Globals.Kube
	k.Context, k.Cluster, k.User, k.Server, k.Token = context, "", "", "", ""
	k.CertificateAuthority, k.ClientCertificate, k.ClientKey, k.TLSServerName = "", "", "", ""
	g.Globals.Nodes = nil
	return &g
}

// Namespace returns the namespace for names without one, as kubectl finds it: --namespace,
// else that of the context, else "default".
func Namespace(f *cli.Factory) string {
	if namespace := f.Globals.Kube.Namespace; namespace != "" {
		return namespace
	}
	if c, err := Load(f); err == nil { // errors of the file are reported where it is required
		if namespace, _, err := c.config.Namespace(); err == nil && namespace != "" {
			return namespace
		}
	}
	return "default"
}

// Cluster identifies the cluster by its server and its name. "" if the file has none.
func (c *File) Cluster() string {
	api, err := c.config.ClientConfig()
	if err != nil {
		return ""
	}
	return api.Host + " " + c.Title()
}

// chosen reports whether the flags themselves name an API server.
func chosen(k *cli.KubeFlags) bool {
	return k.Kubeconfig != "" || k.Context != "" || k.Cluster != "" || k.User != "" || k.Server != ""
}

// Given reports whether an API server is configured, looking only at file names.
func Given(f *cli.Factory) bool {
	if chosen(&f.Globals.Kube) {
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
