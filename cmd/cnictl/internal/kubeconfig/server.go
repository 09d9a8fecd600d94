package kubeconfig

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // exec and OIDC credentials: EKS kubeconfigs run "aws eks get-token"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"cnictl/cmd/cnictl/internal/cli"
)

// serviceAccountToken exists in a pod that may access the API server.
const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// InCluster reports whether this is a pod with a service account.
func InCluster(f *cli.Factory) bool {
	host, _ := f.Env("KUBERNETES_SERVICE_HOST")
	if host == "" {
		return false
	}
	_, err := os.Stat(serviceAccountToken)
	return err == nil
}

// API is the connection to an API server.
type API struct {
	Rest  *rest.Config
	Title string // of the cluster, for people
}

// Find finds the API server and the credentials for it. It makes no connection and runs
// no program.
func Find(f *cli.Factory) (API, error) {
	k := &f.Globals.Kube
	request, err := clientcmd.ParseTimeout(k.RequestTimeout)
	if err != nil {
		return API{}, cli.Usage("--request-timeout=%s: must be a duration such as 30s or 2m", k.RequestTimeout)
	}
	c, err := Load(f)
	if err != nil {
		return API{}, err
	}
	api := API{Title: c.Title()}
	if c.empty() {
		if !InCluster(f) {
			return API{}, none(f, c.files)
		}
		if api.Rest, err = rest.InClusterConfig(); err != nil {
			return API{}, bad("of this pod", err)
		}
		api.Title = "in-cluster"
	} else if api.Rest, err = c.config.ClientConfig(); err != nil {
		return API{}, bad(strings.Join(c.files, ", "), err)
	}
	api.Rest.UserAgent = f.UserAgent()
	if request > 0 {
		api.Rest.Wrap(boundRequests(request))
	}
	return api, nil
}

func none(f *cli.Factory, files []string) error {
	looked := strings.Join(files, ", ")
	if looked == "" {
		looked = "neither KUBECONFIG nor HOME is set"
	} else if missing := slices.DeleteFunc(slices.Clone(files), exists); len(missing) < len(files) {
		looked = "no context in " + looked
	} else if looked += " does not exist"; len(files) > 1 {
		looked = strings.TrimSuffix(looked, "does not exist") + "do not exist"
	}
	return &cli.Error{
		Code: cli.ExitUnreachable, What: "no cluster selected", Why: looked,
		Do: "aws eks update-kubeconfig --name CLUSTER; without a cluster: " + f.Name + " status --targets NAME=unix:/path,NAME=host:port",
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

func bad(files string, err error) error {
	e := &cli.Error{Code: cli.ExitUnreachable, What: "kubeconfig " + files + " cannot be used", Why: err.Error(), Do: "kubectl config view"}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		e.Why = pathErr.Err.Error()
		e.Do = "aws eks update-kubeconfig --name CLUSTER, or --kubeconfig FILE"
	}
	return e
}
