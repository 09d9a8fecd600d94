package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// KubeFlags are kubectl's connection flags. A test verifies that names, short forms and texts
// match cli-runtime's ConfigFlags. ConfigFlags itself is not linked because it imports every
// type of Kubernetes: 4 ms at each start, and 16 MB.
type KubeFlags struct {
	Kubeconfig, Context, Cluster, User, Namespace      string
	Server, Token                                      string
	As, AsUID                                          string
	AsGroup, AsUserExtra                               []string
	CertificateAuthority, ClientCertificate, ClientKey string
	InsecureSkipTLSVerify                              bool
	TLSServerName, RequestTimeout, CacheDir            string
	DisableCompression                                 bool
	AllNamespaces                                      bool // not one of kubectl's connection flags, but of its lists
}

// Shows reports whether --namespace selects what is in a namespace. Without it, everything is
// selected: the namespace of kubectl's context only completes names.
func (k *KubeFlags) Shows(namespace string) bool {
	return k.Namespace == "" || k.AllNamespaces || k.Namespace == namespace
}

// RefuseNamespace rejects --namespace for a command that has nothing to select by it. A default
// from the environment or the settings file is meant for others.
func (f *Factory) RefuseNamespace(cmd *cobra.Command) error {
	if f.SourceOf(namespaceFlag) != FromFlag || f.Globals.Kube.Namespace == "" {
		return nil
	}
	e := &Error{
		Code: ExitUsage, What: cmd.CommandPath() + " cannot filter by --namespace", Why: "what it shows has no namespace",
		Do: "leave out -n (" + f.Name + " help connection says what it is for); --daemonset-namespace says where aws-node runs",
	}
	if cmd.Flags().Lookup("pod") != nil {
		e.Why = "it filters by pod"
		e.Do = cmd.CommandPath() + " --pod " + f.Globals.Kube.Namespace + "/NAME; --daemonset-namespace says where aws-node runs"
	}
	return e
}

const namespaceFlag = "namespace"

// kubeFlagGroup marks these flags for help, which lists them in their own topic.
const kubeFlagGroup = "kubectl"

func (k *KubeFlags) register(into *pflag.FlagSet, cacheDir string) {
	fs := pflag.NewFlagSet(kubeFlagGroup, pflag.ContinueOnError)
	fs.StringVar(&k.Kubeconfig, "kubeconfig", "", "Path to the kubeconfig file to use for CLI requests.")
	fs.StringVar(&k.CacheDir, "cache-dir", cacheDir, "Default cache directory")
	fs.StringVar(&k.ClientCertificate, "client-certificate", "", "Path to a client certificate file for TLS")
	fs.StringVar(&k.ClientKey, "client-key", "", "Path to a client key file for TLS")
	fs.StringVar(&k.Token, "token", "", "Bearer token for authentication to the API server")
	fs.StringVar(&k.As, "as", "", "Username to impersonate for the operation. User could be a regular user or a service account in a namespace.")
	fs.StringVar(&k.AsUID, "as-uid", "", "UID to impersonate for the operation.")
	fs.StringArrayVar(&k.AsGroup, "as-group", nil, "Group to impersonate for the operation, this flag can be repeated to specify multiple groups.")
	fs.StringArrayVar(&k.AsUserExtra, "as-user-extra", nil, "User extras to impersonate for the operation, this flag can be repeated to specify multiple values for the same key.")
	fs.StringVar(&k.Cluster, "cluster", "", "The name of the kubeconfig cluster to use")
	fs.StringVar(&k.User, "user", "", "The name of the kubeconfig user to use")
	fs.StringVarP(&k.Namespace, namespaceFlag, "n", "", "If present, the namespace scope for this CLI request")
	fs.StringVar(&k.Context, "context", "", "The name of the kubeconfig context to use")
	fs.StringVarP(&k.Server, "server", "s", "", "The address and port of the Kubernetes API server")
	fs.StringVar(&k.TLSServerName, "tls-server-name", "", "Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used")
	fs.BoolVar(&k.InsecureSkipTLSVerify, "insecure-skip-tls-verify", false, "If true, the server's certificate will not be checked for validity. This will make your HTTPS connections insecure")
	fs.StringVar(&k.CertificateAuthority, "certificate-authority", "", "Path to a cert file for the certificate authority")
	fs.StringVar(&k.RequestTimeout, "request-timeout", "0", "The length of time to wait before giving up on a single server request. Non-zero values should contain a corresponding time unit (e.g. 1s, 2m, 3h). A value of zero means don't timeout requests.")
	fs.BoolVar(&k.DisableCompression, "disable-compression", false, "If true, opt-out of response compression for all requests to the server")
	fs.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{kubeFlagGroup: nil}
		into.AddFlag(f)
	})
}

// IsKubeFlag reports whether a flag is one of kubectl's.
func IsKubeFlag(f *pflag.Flag) bool {
	_, is := f.Annotations[kubeFlagGroup]
	return is
}
