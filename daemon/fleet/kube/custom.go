package kube

import (
	"slices"
	"strings"

	"cnictl/daemon/cluster"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

// readENIConfig reads an ENIConfig. It is valid if a daemon would use it.
func readENIConfig(raw []byte) (evidence.ENIConfig, error) {
	c, err := decodeObject[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			Subnet         string   `json:"subnet"`
			SecurityGroups []string `json:"securityGroups"`
		} `json:"spec"`
	}](raw)
	if err != nil {
		return evidence.ENIConfig{}, err
	}
	_, invalid := cluster.ParseENIConfig(c.Metadata.Name, c.Spec.Subnet, c.Spec.SecurityGroups)
	return evidence.ENIConfig{Name: c.Metadata.Name, Subnet: c.Spec.Subnet, SecurityGroups: append([]string{}, c.Spec.SecurityGroups...),
		Valid: invalid == nil}, nil
}

// readCNINode reads a CNINode and its node's name.
func readCNINode(raw []byte) (_ *evidence.CNINode, node string, _ error) {
	c, err := decodeObject[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			Features []evidence.Feature `json:"features"`
		} `json:"spec"`
	}](raw)
	if err != nil {
		return nil, "", err
	}
	return &evidence.CNINode{Features: append([]evidence.Feature{}, c.Spec.Features...)}, c.Metadata.Name, nil
}

// readSecurityGroupPolicy reads a SecurityGroupPolicy.
func readSecurityGroupPolicy(raw []byte) (evidence.SecurityGroupPolicy, error) {
	p, err := decodeObject[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			PodSelector            *labelSelector `json:"podSelector"`
			ServiceAccountSelector *labelSelector `json:"serviceAccountSelector"`
			SecurityGroups         struct {
				GroupIDs []string `json:"groupIds"`
			} `json:"securityGroups"`
		} `json:"spec"`
	}](raw)
	if err != nil {
		return evidence.SecurityGroupPolicy{}, err
	}
	return evidence.SecurityGroupPolicy{
		Name: string(evidence.PodOf(p.Metadata.Namespace, p.Metadata.Name)), PodSelector: p.Spec.PodSelector.labels(),
		ServiceAccountSelector: p.Spec.ServiceAccountSelector.labels(), GroupIDs: append([]string{}, p.Spec.SecurityGroups.GroupIDs...),
	}, nil
}

// readWebhook reads a webhook configuration. Its policy is Fail if that of any webhook is. No object
// shows whether webhooks can be reached.
func readWebhook(raw []byte) (evidence.Webhook, error) {
	c, err := decodeObject[struct {
		Metadata meta `json:"metadata"`
		Webhooks []struct {
			FailurePolicy string `json:"failurePolicy"`
		} `json:"webhooks"`
	}](raw)
	if err != nil {
		return evidence.Webhook{}, err
	}
	out := evidence.Webhook{Name: c.Metadata.Name}
	for _, w := range c.Webhooks {
		if out.FailurePolicy != "Fail" {
			out.FailurePolicy = w.FailurePolicy
		}
	}
	return out, nil
}

// readConfigMap reads a ConfigMap.
func readConfigMap(raw []byte) (map[string]string, error) {
	c, err := decodeObject[struct {
		Data map[string]string `json:"data"`
	}](raw)
	if err != nil {
		return nil, err
	}
	for name, value := range c.Data {
		c.Data[name] = scrub.Line(value)
	}
	return orNone(c.Data), nil
}

// readProxyMode returns the mode of kube-proxy from its DaemonSet's flags and its configuration, each
// nil if not read. The mode is "" if unknown.
func readProxyMode(daemonSetRaw []byte, config map[string]string) string {
	mode := ""
	if d, err := decodeObject[daemonSet](daemonSetRaw); err == nil {
		for _, c := range d.Spec.Template.Spec.Containers {
			for _, arg := range c.Args {
				if value, ok := strings.CutPrefix(arg, "--proxy-mode="); ok {
					mode = value
				}
			}
		}
	}
	for _, text := range config {
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(line, "mode:"); ok {
				mode = strings.Trim(strings.TrimSpace(value), `"'`) // the file overrides the flag
			}
		}
	}
	switch {
	case slices.Contains([]string{"iptables", "ipvs", "nftables"}, mode):
		return mode
	case mode == "" && config != nil:
		return "iptables" // kube-proxy's default
	}
	return ""
}

// readServiceAccount reads a ServiceAccount.
func readServiceAccount(raw []byte) (evidence.ServiceAccount, error) {
	a, err := decodeObject[struct {
		Metadata meta `json:"metadata"`
	}](raw)
	if err != nil {
		return evidence.ServiceAccount{}, err
	}
	return evidence.ServiceAccount{Name: a.Metadata.Name, Annotations: a.Metadata.annotations()}, nil
}

// readPolicyEndpoint reads a PolicyEndpoint.
func readPolicyEndpoint(raw []byte) (evidence.PolicyEndpoint, error) {
	p, err := decodeObject[struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			Pods []struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"podSelectorEndpoints"`
		} `json:"spec"`
	}](raw)
	if err != nil {
		return evidence.PolicyEndpoint{}, err
	}
	out := evidence.PolicyEndpoint{Name: string(evidence.PodOf(p.Metadata.Namespace, p.Metadata.Name)), Pods: []evidence.Pod{}}
	for _, pod := range p.Spec.Pods {
		out.Pods = append(out.Pods, evidence.PodOf(pod.Namespace, pod.Name))
	}
	return out, nil
}
