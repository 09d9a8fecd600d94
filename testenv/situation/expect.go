package situation

import (
	"net/netip"
	"strconv"

	"cnictl/capacity/limits"
	"cnictl/daemon/config"
	"cnictl/doctor/evidence"
)

// expected returns what every source shows if nothing is unusual.
func expected(p *population) *evidence.Reading {
	r := &evidence.Reading{At: p.at}
	p.expectDaemon(r)
	p.expectLogs(r)
	p.expectKernel(r)
	p.expectHost(r)
	p.expectAWS(r)
	p.expectKubernetes(r)
	p.expectInstallation(r)
	if p.Daemon == "none" {
		withoutDaemon(r)
	}
	return r
}

// withoutDaemon removes what a node without aws-node does not have.
func withoutDaemon(r *evidence.Reading) {
	for id, s := range r.Sources() {
		switch group(id) {
		case "intro", "metrics", "ckpt":
			s.Lack(evidence.MissingAbsent)
		}
		switch id {
		case "log.ipamd", "log.plugin", "log.np", "log.awsnode":
			s.Lack(evidence.MissingAbsent)
		}
	}
	r.DaemonSet.Content = nil
	r.DaemonPods.Content = nil
}

// environment returns the environment of the container aws-node.
func (p *population) environment() map[string]string {
	env := map[string]string{}
	for _, row := range config.Table() {
		if row.Manifest != "" && row.ReadBy(config.Agent) {
			env[row.Name] = row.Manifest
		}
	}
	if p.IPFamily == "ipv6" {
		env["ENABLE_IPv4"], env["ENABLE_IPv6"], env["ENABLE_PREFIX_DELEGATION"] = "false", "true", "true"
	}
	env["VPC_CNI_VERSION"] = p.Version
	if p.AgentVersion == "" {
		delete(env, "NETWORK_POLICY_ENFORCING_MODE")
	}
	for name, value := range p.Env {
		if delete(env, name); value != nil {
			env[name] = *value
		}
	}
	return env
}

// settings returns the effective settings.
func (p *population) settings() config.Config {
	env := p.environment()
	c, _ := config.Load(func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	return c
}

func (p *population) instance() (limits.Instance, bool) { return limits.Lookup(p.InstanceType) }

// trunk returns the attached trunk; nil if none.
func (p *population) trunk() *worldENI {
	for i := range p.ENIs {
		if p.ENIs[i].Trunk {
			return &p.ENIs[i]
		}
	}
	return nil
}

// nodeIP returns the address of the primary interface.
func (p *population) nodeIP() netip.Addr { return p.primary[p.ENIs[0].ID] }

func ref[T any](value T) *T { return &value }

func text(n int) string { return strconv.Itoa(n) }
