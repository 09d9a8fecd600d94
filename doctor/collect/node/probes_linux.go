package node

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"cnictl/doctor/evidence"
)

// kubeconfigFile is where the AMIs keep kubelet's access to the API server, which does not go
// through kube-proxy.
const kubeconfigFile = "/var/lib/kubelet/kubeconfig"

// probes connects to what the daemon needs: the API server at its service address, at
// CLUSTER_ENDPOINT and where kubelet reaches it, and EC2. Nothing is sent.
func (c *collector) probes(ctx context.Context, env map[string]string, zone string) ([]evidence.Probe, error) {
	targets := []string{joined(env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]), hostPort(env["CLUSTER_ENDPOINT"]),
		hostPort(c.kubeletServer())}
	// If the settings are unknown, so is the endpoint; through a proxy the node does not connect.
	if env != nil && env["HTTPS_PROXY"] == "" && env["https_proxy"] == "" {
		targets = append(targets, hostPort(ec2Endpoint(env, zone)))
	}
	slices.Sort(targets)
	targets = slices.DeleteFunc(slices.Compact(targets), func(t string) bool { return t == "" })
	ctx, cancel := within(ctx, c.Timeout*2/3) // a silent target is noticed before the source's time is over
	defer cancel()
	out := make([]evidence.Probe, len(targets))
	var all sync.WaitGroup
	for i, target := range targets {
		all.Go(func() {
			out[i] = evidence.Probe{From: "host", Kind: "tcp", Target: target, At: c.Now().UTC()}
			out[i].Result, out[i].Detail = connect(ctx, target)
		})
	}
	all.Wait()
	return out, nil
}

// connect opens a connection and closes it.
func connect(ctx context.Context, target string) (result, detail string) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err == nil {
		_ = conn.Close() // opened only to see whether it can be
		return "ok", ""
	}
	detail = clean(err.Error())
	var name *net.DNSError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "nxdomain", detail
	case reason(err) == evidence.MissingTimeout:
		return "timeout", detail
	case errors.Is(err, unix.ECONNREFUSED):
		return "refused", detail
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		return "unreachable", detail
	}
	return "error", detail
}

// kubeletServer returns the API server's URL from kubelet's kubeconfig, empty if unknown.
func (c *collector) kubeletServer() string {
	list, _ := c.processes() // if none, the usual file
	file := kubeconfigFile
	if i := slices.IndexFunc(list, func(p process) bool { return p.name == "kubelet" }); i >= 0 {
		file = cmp.Or(flagsOf(list[i].args[1:])["kubeconfig"], file)
	}
	text, err := c.read(file)
	var config struct {
		Clusters []struct{ Cluster struct{ Server string } }
	}
	if err != nil || yaml.Unmarshal(text, &config) != nil || len(config.Clusters) != 1 {
		return ""
	}
	return config.Clusters[0].Cluster.Server
}

// inRegion matches the region at the start of a zone's name, including local zones:
// us-west-2-lax-1a.
var inRegion = regexp.MustCompile(`^[a-z]+-(?:[a-z]+-)+[0-9]+`)

// ec2Endpoint returns the EC2 URL that the daemon uses: from its own variable, from those of the
// AWS SDK, or the region's. It is empty if unknown, as in isolated partitions, which have their
// own domains.
func ec2Endpoint(env map[string]string, zone string) string {
	region := cmp.Or(env["AWS_REGION"], inRegion.FindString(zone))
	set := cmp.Or(env["AWS_EC2_ENDPOINT"], env["AWS_ENDPOINT_URL_EC2"], env["AWS_ENDPOINT_URL"])
	switch {
	case set != "":
		return set
	case region == "", strings.Contains(region, "-iso"), env["AWS_USE_FIPS_ENDPOINT"] != "", env["AWS_USE_DUALSTACK_ENDPOINT"] != "":
		return ""
	case strings.HasPrefix(region, "cn-"):
		return "https://ec2." + region + ".amazonaws.com.cn"
	}
	return "https://ec2." + region + ".amazonaws.com"
}

// hostPort returns where a URL leads, empty if nowhere.
func hostPort(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	switch {
	case port == "" && u.Scheme == "http":
		port = "80"
	case port == "":
		port = "443"
	}
	return joined(u.Hostname(), port)
}

func joined(host, port string) string {
	if host == "" || port == "" {
		return ""
	}
	return net.JoinHostPort(host, port)
}
