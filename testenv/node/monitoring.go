package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv/aws/monitoring"
	"cnictl/testenv/node/agent"
)

// introspectionAddress is where the EKS node monitoring agent asks the daemon.
const introspectionAddress = "127.0.0.1:61679"

// Monitoring reads what the EKS node monitoring agent reads of a node with these pods.
func (n *Node) Monitoring(pods ...*Pod) (v monitoring.View, _ error) {
	// The kubelet would have made these, and the machine's .link files and network card are not
	// the node's.
	v.PodLogs = []string{"kube-system_aws-node-" + n.Name + "_uid/aws-vpc-cni-init"}
	v.Sandboxes = map[string]string{}
	for _, p := range pods {
		v.Sandboxes[p.ContainerID] = p.IP.String()
	}
	log, err := os.ReadFile(filepath.Join(n.opts.paths().Logs, "ipamd.log"))
	if err != nil {
		return v, fmt.Errorf("read the daemon's log: %w", err)
	}
	v.IPAMDLog = string(log)
	if v.Links, err = n.monitoredLinks(); err != nil {
		return v, err
	}
	if v.ENIs, err = n.monitoredENIs(); err != nil {
		return v, err
	}
	if v.Checkpoint, err = n.read(Checkpoint); err != nil {
		return v, err
	}
	processes := ""
	for into, script := range map[*string]string{
		&processes: "cat /proc/[0-9]*/comm 2>/dev/null || true", &v.IPForward: "cat /proc/sys/net/ipv4/ip_forward",
		&v.Rules[0]: "ip rule show", &v.Rules[1]: "ip -6 rule show",
		&v.Routes[0]: "ip route show table all", &v.Routes[1]: "ip -6 route show table all",
		&v.Filters[0]: "iptables-save", &v.Filters[1]: "ip6tables-save",
	} {
		r, err := n.agent.Run(agent.Cmd{Argv: []string{"/bin/sh", "-euc", script}, Env: []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"}})
		if err == nil && r.Code != 0 {
			err = errors.New(string(r.Stderr))
		}
		if err != nil {
			return v, fmt.Errorf("%s: %w", script, err)
		}
		*into = string(r.Stdout)
	}
	v.Processes = strings.Fields(processes)
	return v, nil
}

func (n *Node) monitoredLinks() (out []monitoring.Link, _ error) {
	err := n.NS.Do(func() error {
		list, err := net.Interfaces()
		for _, l := range list {
			out = append(out, monitoring.Link{Name: l.Name, Flags: l.Flags})
		}
		return err
	})
	return out, err
}

// monitoredENIs returns nil if nothing listens.
func (n *Node) monitoredENIs() ([]byte, error) {
	const limit = 5 * time.Second // the agent's
	conn, err := n.Dial("tcp", introspectionAddress, limit)
	if err != nil {
		return nil, nil //nolint:nilerr // the agent skips what it would compare
	}
	defer conn.Close()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}}
	resp, err := client.Get("http://" + introspectionAddress + introspect.PathENIs) //nolint:noctx // inside the node
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// read reads a file of the node, nil if there is none.
func (n *Node) read(path string) ([]byte, error) {
	f, err := n.agent.Open(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
