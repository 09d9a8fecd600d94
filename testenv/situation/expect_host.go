package situation

import (
	"maps"

	"cnictl/doctor/evidence"
)

func (p *population) expectHost(r *evidence.Reading) {
	r.Packages = evidence.Read(evidence.Packages{
		Packages: []string{}, Units: map[string]string{}, LinkPolicy: "none", ForeignRules: ref(false), ForeignRoutes: ref(false), Modules: []string{}, BPFFS: ref(true),
	})
	r.ContainerEnv = evidence.Read(p.containerEnv())
	r.Kubelet = evidence.Read(evidence.Kubelet{Version: kubeletVersion, MaxPods: p.MaxPods})
	r.Resources = evidence.Read(evidence.Resources{
		CPUs: ref(2), Load1: ref(0.5), MemoryFreeMiB: ref(4096), Throttled: []string{}, Denials: []string{},
		Disks: []evidence.Disk{{Path: "/", UsedPercent: ref(40.0), InodesUsedPercent: ref(5.0)}, {Path: "/run", UsedPercent: ref(40.0), InodesUsedPercent: ref(5.0)}},
	})
	if p.Daemon == "none" {
		r.CNI = evidence.Read(evidence.CNI{Conf: []evidence.CNIConf{}, Bin: []evidence.CNIPlugin{}})
		r.Listeners, r.RunFiles = evidence.Read([]evidence.Listener{}), evidence.Read([]string{})
		return
	}
	cni := evidence.CNI{Conf: []evidence.CNIConf{{File: "10-aws.conflist", Types: []string{"aws-cni", "egress-cni", "portmap"}, Valid: true}}}
	for _, name := range []string{"aws-cni", "egress-cni", "portmap", "host-local", "bandwidth", "tuning", "loopback"} {
		plugin := evidence.CNIPlugin{Name: name, ModifiedAt: p.UpSince, Size: ref(4 << 20)}
		if name == "aws-cni" {
			plugin.Version, plugin.OfImage = &p.Version, ref(true)
		}
		cni.Bin = append(cni.Bin, plugin)
	}
	r.CNI = evidence.Read(cni)
	r.Listeners = evidence.Read(p.listeners())
	files := []string{"ipam.json"}
	if p.onSocket() {
		files = append(files, "ipamd.sock")
	}
	if p.agentOnSocket() {
		files = append(files, "npa.sock")
	}
	if p.Daemon == "ours" {
		files = append([]string{"cni.sock"}, files...)
	}
	r.RunFiles = evidence.Read(files)
}

// onSocket reports whether the daemon serves on its Unix socket: since v1.23.0.
func (p *population) onSocket() bool { return !p.release.Before(evidence.Version{1, 23}) }

// agentOnSocket reports whether the policy agent serves on its Unix socket: since v1.2.6.
func (p *population) agentOnSocket() bool {
	v, ok := evidence.ParseVersion(p.AgentVersion)
	return ok && !v.Before(evidence.Version{1, 2, 6})
}

func (p *population) listeners() []evidence.Listener {
	grpc := "127.0.0.1:50051"
	if p.onSocket() {
		grpc = "/var/run/aws-node/ipamd.sock"
	}
	out := []evidence.Listener{
		{Address: grpc, Process: "aws-k8s-agent"}, {Address: "127.0.0.1:61679", Process: "aws-k8s-agent"}, {Address: "[::]:61678", Process: "aws-k8s-agent"},
	}
	if p.Daemon == "ours" {
		out = append([]evidence.Listener{{Address: "/var/run/aws-node/cni.sock", Process: "aws-k8s-agent"}}, out...)
	}
	if p.AgentVersion == "" {
		return out
	}
	agent := "127.0.0.1:50052"
	if p.agentOnSocket() {
		agent = "/var/run/aws-node/npa.sock"
	}
	return append(out, evidence.Listener{Address: agent, Process: "controller"},
		evidence.Listener{Address: "[::]:8162", Process: "controller"}, evidence.Listener{Address: "[::]:8163", Process: "controller"})
}

// containerEnv returns the environment of each container.
func (p *population) containerEnv() map[string]map[string]string {
	out := map[string]map[string]string{"aws-node": p.environment(), "aws-vpc-cni-init": maps.Clone(p.InitEnv)}
	if out["aws-vpc-cni-init"] == nil {
		out["aws-vpc-cni-init"] = map[string]string{}
	}
	if p.AgentVersion != "" {
		out["aws-eks-nodeagent"] = map[string]string{}
		maps.Copy(out["aws-eks-nodeagent"], p.AgentEnv)
	}
	return out
}

const kubeletVersion = "v1.35.0"
